"""Estimating a law from a table: objective, multistart engine, intervals, diagnostics, report."""
