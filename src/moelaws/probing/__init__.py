"""Measurements of models: hidden states and scores of kept weights, and speed."""
