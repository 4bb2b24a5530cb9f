"""Runs in the formats of other programs, written from their records and kept weights."""
