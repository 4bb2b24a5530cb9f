"""Figures of the paper `sectional`: its cost model, computed as printed and as corrected."""
