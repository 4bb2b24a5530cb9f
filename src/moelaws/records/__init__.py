"""The record of runs: lists, status and summaries, provenance, tags and notes."""
