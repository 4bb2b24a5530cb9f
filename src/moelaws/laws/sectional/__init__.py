"""Laws of "Optimal Scaling Laws for Efficiency Gains in a Theoretical Sectional MoE Framework"."""
