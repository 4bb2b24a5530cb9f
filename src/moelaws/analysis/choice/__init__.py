"""Which runs to train next, of those that could be trained."""
