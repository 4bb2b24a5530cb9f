"""Derived tables of the study `generalization`: slopes, identities, routing, dimension."""
