"""Figures of the published runs; looks.py has their looks, common.py what Eq 1 predicts."""
