"""Runs that are to be tried again, and the tables that hold them."""

from __future__ import annotations

from collections.abc import Iterable

from moelaws.records import runs
from moelaws.records.layout import Results
from moelaws.records.parquet import read_parquet
from moelaws.records.runs import Record
from moelaws.spec.errors import UserError


def retry(results: Results, records: Iterable[Record]) -> None:
    """Removes the summaries of ``records`` and every table that holds one of these runs."""
    run_ids = set()
    for record in records:
        runs.retry(results, record)
        run_ids.add(record.run_id)
    for path in results.root.glob("*/tables/*.parquet"):
        try:
            held = set(read_parquet(path)["run_id"].to_pylist())
        except (UserError, KeyError):
            continue  # not a table of runs
        if held & run_ids:
            path.unlink()
