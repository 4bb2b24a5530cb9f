"""The process that answers ``moelaws query``: DuckDB without files, network, extensions or Python.

DuckDB's own limits do not hold everywhere: ``repeat('x', 3000000000)`` takes memory that it does
not count, and neither that nor its parser can be interrupted. A process of its own can be limited
and ended from outside. It imports nothing of moelaws, and starts in the time that DuckDB takes.

It reads a line of JSON {"sql", "bytes", "seconds"} and then Arrow streams, each of one table whose
schema names it; it writes JSON {"columns", "rows"}, or {"error": why it refuses}.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

MOST_ROWS = 1_000_000  # of an answer
DEEPEST = 100  # lists and structs in one column; the recursion of JSON has its limit
THREADS = 4  # each takes memory for its stack
NO_MEMORY = 3  # exit status; a library that lacks memory may also end by a signal


class RefusedError(Exception):
    """The SQL is not what a query may be; the text says why."""


def main() -> None:
    """Answers the query on standard input."""
    try:
        with open(0, "rb") as source:
            request = json.loads(source.readline())
            _limit(request["bytes"], request["seconds"])
            tables = {}
            while source.peek(1):
                with pa.ipc.open_stream(source) as stream:
                    tables[stream.schema.metadata[b"name"].decode()] = stream.read_all()
        print(json.dumps(answer(request["sql"], tables, request["bytes"]), default=_plain))
    except (duckdb.OutOfMemoryException, MemoryError):
        sys.exit(NO_MEMORY)
    except (duckdb.Error, RefusedError, RecursionError) as error:
        # Below the first paragraph DuckDB draws where in the SQL the mistake is.
        print(json.dumps({"error": " ".join(str(error).split("\n\n")[0].split())}))


def _limit(memory: int, seconds: int) -> None:
    """Limits memory, and the time should no one be left to end this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    signal.alarm(seconds + 1)


def answer(sql: str, tables: dict[str, pa.Table], memory: int) -> dict[str, Any]:
    """Returns {"columns", "rows"} of one SELECT over ``tables``, by their names.

    Args:
        sql: the statement.
        tables: what it can read.
        memory: bytes that DuckDB may take, of which it counts four fifths.

    Raises:
        RefusedError: for any other statement, and for an answer that JSON cannot hold.
        duckdb.Error: for a mistake in the SQL, and for what reaches outside of the tables.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "temp_directory": "",
        "threads": THREADS,
        "memory_limit": f"{memory * 8 // 10}B",
        "lock_configuration": True,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        _refuse_other_than_select(connection, sql)
        for name, table in tables.items():
            connection.register(name, table)
        cursor = connection.execute(sql)
        columns: list[str] = []
        for name, kind in ((name, str(kind)) for name, kind, *_ in cursor.description):
            if "TIME ZONE" in kind:  # Python has no such time without one more library
                raise RefusedError(f"column {name!r} is {kind}; cast it to TIMESTAMP or VARCHAR")
            if kind.count("[") + kind.count("(") > DEEPEST:
                raise RefusedError(f"column {name!r} is nested too deeply; cast it to VARCHAR")
            while name in columns:
                name += "_1"
            columns.append(name)
        rows = cursor.fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise RefusedError(
                f"the answer has more than {MOST_ROWS:,} rows; add a LIMIT, or aggregate"
            )
        return {"columns": columns, "rows": rows}


def _refuse_other_than_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuses all but one SELECT, or an EXPLAIN of one, as DuckDB's parser sees it.

    DESCRIBE, SUMMARIZE, SHOW, VALUES and FROM are SELECTs to it.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise RefusedError(f"the text holds {len(statements)} statements; one is allowed")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        kind = _explained(connection, sql)
    if kind != duckdb.StatementType.SELECT:
        raise RefusedError(f"a statement of the kind {kind.name} is not allowed")


def _explained(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.StatementType:
    """Returns the kind of what an EXPLAIN explains: of the first rest that is a statement."""
    text = sql.encode()
    for offset, _ in duckdb.tokenize(sql)[1:]:
        try:
            (statement,) = connection.extract_statements(text[offset:].decode())
        except (duckdb.ParserException, ValueError):
            continue  # an option of EXPLAIN
        if statement.type != duckdb.StatementType.EXPLAIN:  # as it is after a comment
            return statement.type
    return duckdb.StatementType.EXPLAIN


def _plain(value: Any) -> Any:
    """Returns what JSON does not know: a decimal as a number, a date or the like as text."""
    return float(value) if isinstance(value, Decimal) else str(value)


if __name__ == "__main__":
    main()
