"""Figures of the paper `sparsity` (Parameters vs FLOPs), from the user's own runs."""
