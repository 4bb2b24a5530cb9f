"""Files of results/: where they lie, and how they are written (atomic, sealed) and locked."""
