"""Derived tables of the published runs: gains over dense models, cut-offs, curves over steps."""
