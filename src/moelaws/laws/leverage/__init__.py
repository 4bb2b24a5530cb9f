"""Laws of "Towards Greater Leverage: Scaling Laws for Efficient MoE Language Models"."""
