"""Laws of "Joint MoE Scaling Laws" (Ludziejewski et al. 2025)."""
