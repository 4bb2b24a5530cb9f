"""Laws of "Generalization and Scaling Laws for Mixture-of-Experts Transformers"."""
