"""Simulated tables with a claim's effect and without it, on which the rules of claims are tried.

Each module has the tables of one study; ``test_nulls`` judges them all.
"""
