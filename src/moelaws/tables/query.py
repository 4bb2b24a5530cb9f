"""SQL over the tables of a tier and the record of the runs; it reads and changes nothing else."""

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.records.runs import all_records, flatten
from moelaws.spec.errors import UserError
from moelaws.tables.parquet import read_table

RUNS, SCORES = "runs", "scores"
MOST_ROWS = 1_000_000  # of an answer
# DuckDB refuses every file, every extension and every change of a setting.
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # else a table's name may be a variable of this program
    "temp_directory": "",
    "lock_configuration": True,
}


class RefusedError(Exception):
    """The SQL is not what a query may be; the text says why."""


class Answer(NamedTuple):
    """The answer to a query: its columns' names and its rows, as JSON knows values."""

    columns: list[str]
    rows: list[list[Any]]


def query(sql: str, results: Results, tier: str, seconds: int = 60, gigabytes: int = 2) -> Answer:
    """Answers ``sql``, in which a study's table goes by the study's name.

    ``runs`` is the record of every run, a column for each dotted key; ``scores`` holds what kept
    runs scored on tasks, a row for each run, step and task.
    ``seconds`` count once the tables are read; DuckDB may take so many ``gigabytes`` of memory.
    """
    studies = sorted(p.stem for p in results.tier(tier).table("x").parent.glob("*.parquet"))
    scored = sorted(results.scores("x").parent.glob("*.parquet"))
    names = [*studies, RUNS, *([SCORES] if scored else [])]
    # A table that is read is named in the text. Where none is, all may be meant: SHOW TABLES.
    named = [name for name in names if name.casefold() in sql.casefold()] or names
    tables = {name: _table(name, results, tier) for name in named}
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
    except (duckdb.Error, RefusedError, RecursionError, ValueError) as error:
        # Below the first paragraph DuckDB draws where in the SQL the mistake is.
        reason = " ".join(str(error).split("\n\n")[0].split())
        raise UserError(
            f"query: {reason}; allowed is one SELECT, DESCRIBE, SUMMARIZE or EXPLAIN "
            f"over these tables of tier {tier}: {', '.join(names)}"
        ) from None


def answer(sql: str, tables: dict[str, pa.Table], seconds: int, gigabytes: int) -> Answer:
    """Answers one SELECT over ``tables``, by their names.

    DESCRIBE, SUMMARIZE, SHOW, VALUES and FROM are SELECTs to DuckDB's parser.

    Raises:
        RefusedError: for any other statement, and for an answer that is too long.
        duckdb.Error: for a mistake in the SQL, and for what reaches outside of the tables.
        TimeoutError: after that many ``seconds``.
    """
    config = {**LOCKED, "memory_limit": f"{gigabytes}GB"}
    with duckdb.connect(":memory:", config=config) as connection, ThreadPoolExecutor(1) as thread:
        for name, table in tables.items():
            connection.register(name, table)
        answering = thread.submit(_answer, connection, sql)
        try:
            return answering.result(timeout=seconds)
        except (TimeoutError, KeyboardInterrupt):
            connection.interrupt()
            raise


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    sql.encode()  # raises a ValueError for text that is not UTF-8
    statements = connection.extract_statements(sql)
    kinds = [statement.type.name for statement in statements]
    if kinds not in (["SELECT"], ["EXPLAIN"]):
        raise RefusedError(f"the SQL is {', '.join(kinds) or 'empty'}")
    cursor = connection.execute(statements[0])
    columns: list[str] = []
    for name, kind, *_ in cursor.description:
        if "TIME ZONE" in str(kind):  # Python has no such time without one more library
            raise RefusedError(f"column {name!r} is {kind}; cast it to TIMESTAMP")
        while name in columns:
            name += "_1"
        columns.append(name)
    rows = cursor.fetchmany(MOST_ROWS + 1)
    if len(rows) > MOST_ROWS:
        raise RefusedError(f"the answer has more than {MOST_ROWS:,} rows; add a LIMIT")
    return Answer(columns, [[_plain(value) for value in row] for row in rows])


def _plain(value: Any) -> Any:
    """Returns a value as JSON knows it: a decimal as a number, a date or the like as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return float(value) if isinstance(value, Decimal) else str(value)


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
