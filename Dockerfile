# The tested packages with torch's CUDA build, and MegaBlocks: docs/gpus.md, "Installing".
FROM python:3.12-slim
# gcc compiles the launchers of Triton's kernels, and git tells a run's commit.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev git && rm -rf /var/lib/apt/lists/*
WORKDIR /moelaws
COPY envs/cpu.lock envs/megablocks.txt envs/
RUN pip install --no-cache-dir -r envs/cpu.lock
RUN pip install --no-cache-dir --no-deps --no-build-isolation -r envs/megablocks.txt
COPY . .
RUN pip install --no-cache-dir --no-deps -e .
CMD ["snakemake", "--cores", "all"]
