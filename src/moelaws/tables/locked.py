"""Answers one SELECT over tables in memory: no file, no network, bounded memory and time."""

import os
import resource
import signal
from collections.abc import Mapping
from decimal import Decimal
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from moelaws.records.memory import die_with
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside

MAX_ROWS, SECONDS, GIGABYTES = 1_000_000, 60, 2  # of an answer
LOCKED = table_beside(__file__)  # DuckDB's settings


class Answer(NamedTuple):
    """The answer to a query: the names of its columns, and its rows of values that JSON has."""

    columns: list[str]
    rows: list[list[Any]]


def answer(sql: str, tables: Mapping[str, pa.Table]) -> Answer:
    """Answers one SELECT over ``tables``, by their names.

    DESCRIBE, SUMMARIZE, SHOW, VALUES and FROM are SELECTs to DuckDB's parser. Raises ValueError for
    any other statement, and for an answer that is too long, duckdb.Error for a mistake in the SQL
    and for SQL that reaches outside of the tables, and UserError for what needs more time or memory
    than one may.
    """
    # DuckDB's own limits do not hold while it plans, nor for a single text of gigabytes.
    ended, sender = Pipe(duplex=False)
    words = sql, tables, sender, os.getpid()
    process = get_context("fork").Process(target=_answer_within, args=words)
    process.start()
    sender.close()
    try:
        if not ended.poll(SECONDS):
            raise UserError(f"there was no answer within {SECONDS} s; ask for less")
        outcome = ended.recv()
    except EOFError:
        outcome = MemoryError()
    finally:
        process.kill()
        process.join()
    if isinstance(outcome, duckdb.OutOfMemoryException | MemoryError):
        raise UserError(f"the answer needs more than {GIGABYTES} GB of memory; ask for less")
    if isinstance(outcome, Answer):
        return outcome
    raise outcome


def _answer_within(
    sql: str, tables: Mapping[str, pa.Table], sender: Connection, parent: int
) -> None:
    """Sends the answer, or the error, from a process of its own that gets no more memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    # How many pages of data this process has now.
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + GIGABYTES * 10**9
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    config = {**LOCKED, "memory_limit": f"{GIGABYTES}GB", "threads": min(8, os.cpu_count() or 1)}
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
    columns: dict[str, int] = {}  # each column's name, with how often it came again
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


def reason(error: Exception) -> str:
    """Returns on one line why there is no answer."""
    # A drawing of the place in the SQL follows DuckDB's first paragraph. DuckDB knows tables of its
    # own, such as pg_attribute, and proposes them.
    return " ".join(str(error).split("\n\n")[0].partition("Did you mean")[0].split())
