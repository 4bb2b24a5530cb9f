"""The law of Wang et al. 2024, as the allocation paper uses it for a baseline."""
