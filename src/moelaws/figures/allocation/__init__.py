"""Figures and tables of the paper `allocation` (expert-attention allocation), from own runs."""
