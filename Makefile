PYTHON ?= .venv/bin/python

.PHONY: bench-train

# The speed of training, as ratios within one run: docs/speed.md.
bench-train:
	$(PYTHON) benchmarks/train.py --json results/speed.json
