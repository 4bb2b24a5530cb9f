"""What packs save on a cluster: short runs in a few Slurm jobs, and the same runs in a job each.

A Slurm of one node on this machine trains each, first in packs. It needs root and Debian's packages
slurm-wlm and munge. The code is that of the last commit. Prints one JSON object: jobs and seconds
of each, and their ratios.

    python benchmarks/packs.py --runs 200
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[1]
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
SKIPPED = 77  # what one_node.py ends with where there is no Slurm
# A run trains for about a quarter of a second.
SETTINGS = {
    "context": 32, "vocab_size": 300, "n_layers": 1, "n_heads": 1, "n_experts": 8, "top_k": 2,
    "d_expert": 16, "tied_embeddings": True, "batch": 4, "steps": 80, "lr": 0.01,
    "evaluation_sequences": 32, "max_epochs": 1000,
}  # fmt: skip
# By default Snakemake looks at a job for the first time after 40 s, which would favour packs more.
SITE = {"cores": os.cpu_count(), "slurm-init-seconds-before-status-checks": 3}
# When it began and ended, and the number of the next job: Slurm forgets the first jobs of many.
TIMED = """
date +%s.%N
"$@" > /dev/null || exit
date +%s.%N
scontrol show config | sed -n 's/^NEXT_JOB_ID *= *//p'
"""


def prepare(root: Path, runs: int) -> None:
    """Makes a clone of the repository with a study of so many runs, and their text."""
    subprocess.run(["git", "clone", "-q", REPOSITORY, root], check=True)
    (root / "config/config.yaml").write_text("studies: [short]\ncorpus: [src/moelaws/cli/*.py]\n")
    sweeps = [{"axes": {"d_model": 16, "seed": list(range(runs))}}]
    grids = {"demo": {"settings": SETTINGS, "sweeps": sweeps}}
    study = {"study": "short", "title": "Short runs", "grids": grids}
    (root / "config/studies/short.yaml").write_text(yaml.safe_dump(study))
    (root / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
    call(root, *SNAKEMAKE, "--cores", "1", "--until", "prepare_corpus", "--", "runs")


def call(root: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(words, cwd=root, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode == SKIPPED:
        raise SystemExit(done.stdout)
    done.check_returncode()
    return done.stdout


def measured(runs: int, minutes: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "moelaws"
        prepare(root, runs)
        slurm = [sys.executable, "tests/slurm/one_node.py", "bash", "-c", TIMED, "timed"]
        packs = ["--profile", "slurm", "--config", f"pack_minutes={minutes}", "--", "runs"]
        began, ended, job = map(float, call(root, *slurm, *SNAKEMAKE, *packs).split()[-3:])
    return {"jobs": int(job) - 1, "seconds": round(ended - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    packed, alone = measured(runs, 30), measured(runs, 0)
    ratio = {key: round(alone[key] / packed[key], 1) for key in packed}
    print(json.dumps({"packed": packed, "a job each": alone, "ratio": ratio}, indent=1))


if __name__ == "__main__":
    main()
