"""Answers SQL over the tables of a tier and the record of the runs; it reads nothing else."""

import json
import os
import resource
import signal
from collections.abc import Callable
from decimal import Decimal
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.records.memory import die_with
from moelaws.records.runs import all_records, flatten
from moelaws.spec.errors import UserError, listed
from moelaws.spec.words import counted
from moelaws.tables.parquet import read_table

RUNS, SCORES = "runs", "scores"
MAX_ROWS = 1_000_000  # of an answer
# DuckDB refuses every file, every extension and every change of a setting.
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # else a table's name may be a variable of this program
    "temp_directory": "",
    "lock_configuration": True,
}


class Answer(NamedTuple):
    """The answer to a query: the names of its columns, and its rows of values that JSON has."""

    columns: list[str]
    rows: list[list[Any]]


def query(
    sql: str,
    results: Results,
    tier: str,
    seconds: int = 60,
    gigabytes: int = 2,
    warn: Callable[[str], None] = lambda line: None,
) -> Answer:
    """Answers ``sql``, in which a study's table has the name of the study.

    ``runs`` is the record of every run, with a column for each dotted key; ``scores`` has a row for
    each run, step and task on which a run with kept weights was scored. DuckDB may take this many
    ``gigabytes`` of memory, and this many ``seconds`` once the tables are read. ``warn`` is called
    if runs have damaged files, whose columns are then null.
    """
    studies = sorted(p.stem for p in results.tier(tier).table("x").parent.glob("*.parquet"))
    scored = sorted(results.scores("x").parent.glob("*.parquet"))
    names = [*studies, RUNS, *([SCORES] if scored else [])]
    # Only tables that the text names are read. If it names none, as SHOW TABLES, all are read.
    named = [name for name in names if name.casefold() in sql.casefold()] or names
    tables = {name: _table(name, results, tier, warn) for name in named}
    try:
        return answer(sql, tables, seconds, gigabytes)
    except TimeoutError:
        raise UserError(
            f"query: there was no answer within {seconds} s; ask for less, or allow more "
            "time with --time-limit"
        ) from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise UserError(
            f"query: the answer needs more than {gigabytes} GB of memory; ask for less, or allow "
            "more with --memory-limit"
        ) from None
    except (duckdb.Error, RecursionError, ValueError) as error:
        # DuckDB's first paragraph is the reason; a drawing of the place in the SQL follows.
        # It knows tables of its own, such as pg_attribute, and proposes them.
        reason = " ".join(str(error).split("\n\n")[0].partition("Did you mean")[0].split())
        raise UserError(
            f"query: {reason}; allowed is one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN "
            f"over these tables of tier {tier}: {', '.join(names)}"
        ) from None


def answer(sql: str, tables: dict[str, pa.Table], seconds: int, gigabytes: int) -> Answer:
    """Answers one SELECT over ``tables``, by their names.

    DESCRIBE, SUMMARIZE, SHOW, VALUES and FROM are SELECTs to DuckDB's parser. Raises ValueError for
    any other statement, and for an answer that is too long, duckdb.Error for a mistake in the SQL
    and for SQL that reaches outside of the tables, and TimeoutError after that many ``seconds``.
    """
    # DuckDB's own limits do not hold while it plans, nor for a single text of gigabytes.
    ended, sender = Pipe(duplex=False)
    words = sql, tables, gigabytes, sender, os.getpid()
    process = get_context("fork").Process(target=_answer_within, args=words)
    process.start()
    sender.close()
    try:
        if not ended.poll(seconds):
            raise TimeoutError
        outcome = ended.recv()
    except EOFError:
        raise MemoryError from None
    finally:
        process.kill()
        process.join()
    if isinstance(outcome, Answer):
        return outcome
    raise outcome


def _answer_within(
    sql: str, tables: dict[str, pa.Table], gigabytes: int, sender: Connection, parent: int
) -> None:
    """Sends the answer, or the error, from a process of its own that gets no more memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # of data, now
    most = pages * resource.getpagesize() + gigabytes * 10**9
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    config = {**LOCKED, "memory_limit": f"{gigabytes}GB", "threads": min(8, os.cpu_count() or 1)}
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            for name, table in tables.items():
                connection.register(name, table)
            sender.send(_answer(connection, sql))
    except Exception as error:
        sender.send(error)


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    sql.encode()  # raises a ValueError for text that is not UTF-8
    statements = connection.extract_statements(sql)
    kinds = [statement.type.name for statement in statements]
    if kinds not in (["SELECT"], ["EXPLAIN"]):
        raise ValueError(f"the SQL is {', '.join(kinds) or 'empty'}")
    cursor = connection.execute(statements[0])
    columns: dict[str, int] = {}  # and how often each name came again
    for name, kind, *_ in cursor.description:
        if "TIME ZONE" in str(kind):  # Python has no such time without one more library
            raise ValueError(f"column {name!r} is {kind}; cast it to TIMESTAMP")
        own = name
        while own in columns:
            columns[name] += 1
            own = f"{name}_{columns[name]}"
        columns[own] = 0
    rows = cursor.fetchmany(MAX_ROWS + 1)
    if len(rows) > MAX_ROWS:
        raise ValueError(f"the answer has more than {MAX_ROWS:,} rows; add a LIMIT")
    return Answer([*columns], [[_plain(value) for value in row] for row in rows])


def _plain(value: Any) -> Any:
    """Returns a value that JSON has: a number for a decimal, a text for a date and the like."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return float(value) if isinstance(value, Decimal) else str(value)


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
    rows = [flatten(record.as_dict()) for record in records]
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
