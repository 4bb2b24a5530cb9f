"""Laws of "Scaling Laws for Fine-Grained Mixture of Experts" (Krajewski et al. 2024)."""
