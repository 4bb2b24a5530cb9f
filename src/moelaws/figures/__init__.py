"""Figures: one package a paper, in one style, drawn from tables, fits and derived tables."""
