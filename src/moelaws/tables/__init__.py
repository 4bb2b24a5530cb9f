"""Parquet tables: one row a run, units and descriptions in the schema, validated both ways."""
