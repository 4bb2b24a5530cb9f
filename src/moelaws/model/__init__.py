"""The transformer: attention, router, experts behind one interface, and their parameters."""
