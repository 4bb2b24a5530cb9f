"""Laws of "Unified Scaling Laws for Routed Language Models" (Clark et al. 2022)."""
