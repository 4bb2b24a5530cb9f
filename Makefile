PYTHON ?= .venv/bin/python

.PHONY: bench-demo bench-train bench-fit gpu gpu-report gpu-wheels explore hostile

# What README's first line costs, rule by rule, in a fresh folder: docs/demo.md.
bench-demo:
	$(PYTHON) benchmarks/demo.py --json results/demo_speed.json

# The speed of training, as ratios within one run: docs/speed.md.
bench-train:
	$(PYTHON) benchmarks/train.py --json results/speed.json

# The speed of fits, beside their targets: docs/fitting.md.
bench-fit:
	$(PYTHON) benchmarks/fit.py --json results/fit_speed.json

# All that is measured on a GPU, in 25 minutes; a second call goes on where the first was stopped: docs/speed.md.
# make gpu PYTHON=python3 PARTS="speed tier" OUT=folder
PARTS ?= speed profile accuracy tests resume packing tier
OUT ?= results/gpu_day
gpu:
	$(PYTHON) benchmarks/on_gpu.py --parts $(PARTS) --out $(OUT)

# docs/speed.md, from what `make gpu` measured.
gpu-report:
	$(PYTHON) benchmarks/on_gpu.py --report --out $(OUT)

# Wheels for `make gpu` on a machine without a network: MegaBlocks, and what a machine with torch mostly lacks of
# benchmarks/gpu/needs.py. Where more is missing, `make gpu` names it: add it to GPU_PACKAGES.
GPU_PYTHON ?= 3.12
GPU_PACKAGES ?= pydantic|pydantic-core|annotated-types|typing-inspection|typing-extensions
gpu-wheels:
	$(PYTHON) -m pip download --quiet --no-deps --only-binary=:all: --python-version $(GPU_PYTHON) \
	  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
	  --dest wheels $$(grep -hoE '^($(GPU_PACKAGES))==[^ ]+' envs/cpu.lock)
	$(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir wheels \
	  $$(grep -hoE '^(megablocks|stanford-stk)==[^ ]+' envs/megablocks.txt)
	$(PYTHON) -c "import json; from moelaws.records.provenance import collect as c; a = c(); \
	  print(json.dumps({k: a[k] for k in ('commit', 'code')}))" > wheels/commit.json

# Property tests on other examples each time, many more than the suite takes.
explore:
	$(PYTHON) -m pytest --hypothesis-profile explore $$(grep -rl --include='test_*.py' @given tests)

# Damaged files, odd tables, kills and full disks, many more than CI takes: docs/reliability.md.
hostile:
	MOELAWS_HOSTILE=1000 $(PYTHON) -m pytest -n 1 -m "" tests/hostile $$(grep -rl --include='test_killed_*.py' killed_at tests)
