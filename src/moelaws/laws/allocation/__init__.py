"""Laws of "Optimal Expert-Attention Allocation in Mixture-of-Experts"."""
