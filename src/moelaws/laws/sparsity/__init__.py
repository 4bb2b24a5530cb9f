"""Laws of "Parameters vs FLOPs: Scaling Laws for Optimal Sparsity for MoE Language Models"."""
