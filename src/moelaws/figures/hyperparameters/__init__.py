"""Figures and tables of the search for learning rate, batch and model size (leverage, App E)."""
