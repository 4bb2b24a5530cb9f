"""Grids expanded to runs."""
