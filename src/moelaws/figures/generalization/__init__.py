"""Figures and tables of the paper `generalization`, from the user's own runs."""
