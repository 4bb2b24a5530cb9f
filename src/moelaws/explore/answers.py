"""Stub."""
def answers(*a): return []
