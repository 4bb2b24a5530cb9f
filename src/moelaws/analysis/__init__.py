"""What papers derive from tables and fits: optima of isoFLOP curves and surfaces."""
