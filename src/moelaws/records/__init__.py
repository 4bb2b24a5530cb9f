"""The record of what was run: lists, status and summaries of runs, provenance, tags and notes."""
