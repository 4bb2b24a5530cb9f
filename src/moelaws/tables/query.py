"""Answers SQL over the tables of a tier and the record of the runs; it reads nothing else."""

import json
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.records.names import rows_of
from moelaws.records.runs import all_records
from moelaws.spec.errors import UserError, listed
from moelaws.spec.words import counted
from moelaws.tables.locked import Answer, answer, reason
from moelaws.tables.parquet import read_table

RUNS, SCORES = "runs", "scores"


def query(
    sql: str,
    results: Results,
    tier: str,
    warn: Callable[[str], None] = lambda line: None,
) -> Answer:
    """Answers ``sql``, in which a study's table has the name of the study.

    ``runs`` has a row for each run on record (``records.names``); ``scores`` has a row for each
    run, step and task on which a run with kept weights was scored. ``warn`` is called if runs have
    damaged files, whose columns are then null.
    """
    studies = sorted(p.stem for p in results.tier(tier).table("x").parent.glob("*.parquet"))
    scored = sorted(results.scores("x").parent.glob("*.parquet"))
    names = [*studies, RUNS, *([SCORES] if scored else [])]
    # Only tables that the text names are read. If it names none, as SHOW TABLES, all are read.
    named = [name for name in names if name.casefold() in sql.casefold()] or names
    tables = {name: _table(name, results, tier, warn) for name in named}
    try:
        return answer(sql, tables)
    except (duckdb.Error, RecursionError, ValueError) as error:
        raise UserError(
            f"query: {reason(error)}; allowed is one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN "
            f"over these tables of tier {tier}: {', '.join(names)}"
        ) from None


def _table(name: str, results: Results, tier: str, warn: Callable[[str], None]) -> pa.Table:
    if name == RUNS:
        return _runs(results, warn)
    if name == SCORES:
        return _scores(results)
    frame = read_table(results.tier(tier).table(name))
    return pa.Table.from_pandas(frame, preserve_index=False)


def _runs(results: Results, warn: Callable[[str], None]) -> pa.Table:
    """Returns a row for each run on record; a key whose type differs among runs is JSON text."""
    records = all_records(results)
    if damaged := [record.run_id for record in records if record.damaged]:
        warn(f"what damaged files say of {counted(len(damaged), 'run')} is null: {listed(damaged)}")
    rows = [row for _, row in rows_of(records)]
    columns = dict.fromkeys(key for row in rows for key in row) or ["run_id"]
    return pa.table({column: _array([row.get(column) for row in rows]) for column in columns})


def _scores(results: Results) -> pa.Table:
    tables = []
    for path in sorted(results.scores("x").parent.glob("*.parquet")):
        table = read_parquet(path)
        run = pa.array([path.stem] * len(table), pa.string())
        tables.append(table.add_column(0, "run_id", run).replace_schema_metadata())
    return pa.concat_tables(tables)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else json.dumps(value) for value in values])
