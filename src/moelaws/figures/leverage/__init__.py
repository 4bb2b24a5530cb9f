"""Figures and tables of "Towards Greater Leverage" (Tian et al.)."""
