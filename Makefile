PYTHON ?= .venv/bin/python

.PHONY: bench-train bench-fit explore hostile

# The speed of training, as ratios within one run: docs/speed.md.
bench-train:
	$(PYTHON) benchmarks/train.py --json results/speed.json

# The speed of fits, beside their targets: docs/fitting.md.
bench-fit:
	$(PYTHON) benchmarks/fit.py --json results/fit_speed.json

# Property tests on other examples each time, many more than the suite takes.
explore:
	$(PYTHON) -m pytest --hypothesis-profile explore $$(grep -rl --include='test_*.py' @given tests)

# Damaged files, odd configurations, kills and full disks, many more than CI takes: docs/reliability.md.
hostile:
	MOELAWS_HOSTILE=1000 $(PYTHON) -m pytest -n 1 -m "" tests/hostile $$(grep -rl --include='test_killed_*.py' killed_at tests)
