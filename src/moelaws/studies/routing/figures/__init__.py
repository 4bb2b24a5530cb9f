"""Figures of the published runs; common.py has their colours and what Eq 1 predicts."""
