"""Files of results/: where they lie, and how they are written (atomically, sealed) and locked."""
