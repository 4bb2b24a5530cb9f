"""SQL over the tables of a tier and the record of the runs, answered by a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from moelaws.records.layout import Results
from moelaws.records.parquet import read_parquet
from moelaws.records.runs import all_records, flatten
from moelaws.spec.errors import UserError
from moelaws.tables.parquet import read_table

RUNS, SCORES = "runs", "scores"
NO_MEMORY = 3  # exit status; a library that lacks memory may also end by a signal


class Answer(NamedTuple):
    """The answer to a query: its columns' names and its rows, as JSON knows values."""

    columns: list[str]
    rows: list[list[Any]]


def query(
    sql: str,
    results: Results,
    tier: str,
    seconds: int = 60,
    gigabytes: int = 2,
) -> Answer:
    """Answers ``sql``, in which a study's table goes by the study's name.

    ``runs`` is the record of every run, a column for each dotted key; ``scores`` what kept runs
    scored on tasks, a row a run, step and task. One SELECT, DESCRIBE,
    SUMMARIZE or EXPLAIN is answered; it can read these tables and nothing else, and cannot write.

    Args:
        seconds: how long the answer may take once the tables are read.
        gigabytes: the most memory that the answer may take.

    Raises:
        UserError: why there is no answer, what is allowed, and the names of the tables.
    """
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UserError(f"query: the SQL {sql!r} is not UTF-8") from None
    studies = sorted(p.stem for p in results.tier(tier).table("x").parent.glob("*.parquet"))
    scored = sorted(results.scores("x").parent.glob("*.parquet"))
    names = [*studies, RUNS, *([SCORES] if scored else [])]
    # A table that is read is named in the text. Where none is, all may be meant: SHOW TABLES.
    named = [name for name in names if name.casefold() in sql.casefold()] or names
    header = {"sql": sql, "bytes": gigabytes * 10**9, "seconds": seconds}
    with _confined() as process:
        try:
            tables = {name: _table(name, results, tier) for name in named}
            output, complaint = process.communicate(_request(header, tables), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise UserError(
                f"query: there was no answer within {seconds} s; ask for less, or allow more "
                "time with --time-limit"
            ) from None
        finally:
            process.kill()
            process.wait()
    if process.returncode == NO_MEMORY or process.returncode < 0:
        raise UserError(
            f"query: the answer needs more than {gigabytes} GB of memory; ask for less, or allow "
            "more with --memory-limit"
        )
    if process.returncode:  # no DuckDB, as when only what fits and figures need is installed
        reason = complaint.decode(errors="replace").strip().splitlines()[-1:]
        raise UserError(f"query: the process that answers failed: {' '.join(reason)}")
    answer = json.loads(output)
    if "error" in answer:
        raise UserError(
            f"query: {answer['error']}; allowed is one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN "
            f"over these tables of tier {tier}: {', '.join(names)}"
        )
    return Answer(answer["columns"], answer["rows"])


def _confined() -> subprocess.Popen[bytes]:
    """Starts the process that answers, which reads while this one reads the tables."""
    return subprocess.Popen(
        # Of the folders that Python searches for modules, not the current one.
        [sys.executable, "-P", str(Path(__file__).with_name("confined.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A library's threads, one a core, would take memory that the query lacks.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        start_new_session=True,  # Ctrl-C reaches this process alone, which ends the other
    )


def _request(header: dict[str, Any], tables: dict[str, pa.Table]) -> bytes:
    request = io.BytesIO(json.dumps(header).encode() + b"\n")
    request.seek(0, io.SEEK_END)
    for name, table in tables.items():
        named = table.replace_schema_metadata({"name": name})
        with pa.ipc.new_stream(request, named.schema) as stream:
            stream.write_table(named)
    return request.getvalue()


def _table(name: str, results: Results, tier: str) -> pa.Table:
    if name == RUNS:
        return _runs(results)
    if name == SCORES:
        return _scores(results)
    frame = read_table(results.tier(tier).table(name))
    return pa.Table.from_pandas(frame, preserve_index=False)


def _runs(results: Results) -> pa.Table:
    """Returns a row for each run on record; what differs in type among runs is JSON text."""
    rows = [flatten(record.as_dict()) for record in all_records(results)]
    columns = dict.fromkeys(key for row in rows for key in row) or ["run_id"]
    return pa.table({column: _array([row.get(column) for row in rows]) for column in columns})


def _scores(results: Results) -> pa.Table:
    """Returns a row for each run, kept step and task."""
    parts = []
    for path in sorted(results.scores("x").parent.glob("*.parquet")):
        part = read_parquet(path)
        parts.append(part.add_column(0, "run_id", pa.array([path.stem] * len(part), pa.string())))
    return pa.concat_tables(part.replace_schema_metadata() for part in parts)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else json.dumps(value) for value in values])
