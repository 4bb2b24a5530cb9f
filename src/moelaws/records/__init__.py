"""The record of what was run: layout of results/, locks, status, provenance, queries."""
