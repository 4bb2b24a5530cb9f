"""What the leverage paper derives: efficiency leverage of curves and of runs, best settings."""
