"""Reproducible sweeps and scaling laws for Mixture-of-Experts language models."""

__version__ = "0.1.0"
