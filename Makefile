PYTHON ?= .venv/bin/python

.PHONY: bench-train bench-fit explore

# The speed of training, as ratios within one run: docs/speed.md.
bench-train:
	$(PYTHON) benchmarks/train.py --json results/speed.json

# The speed of fits, beside their targets: docs/fitting.md.
bench-fit:
	$(PYTHON) benchmarks/fit.py --json results/fit_speed.json

# Property tests on other examples each time, many more than the suite takes.
explore:
	$(PYTHON) -m pytest --hypothesis-profile explore $$(grep -rl --include='test_*.py' @given tests)
