"""What the allocation paper derives from its sweeps of the expert-attention ratio."""
