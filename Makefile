PYTHON ?= .venv/bin/python

.PHONY: bench-train bench-fit

# The speed of training, as ratios within one run: docs/speed.md.
bench-train:
	$(PYTHON) benchmarks/train.py --json results/speed.json

# The speed of fits, beside their targets: docs/fitting.md.
bench-fit:
	$(PYTHON) benchmarks/fit.py --json results/fit_speed.json
