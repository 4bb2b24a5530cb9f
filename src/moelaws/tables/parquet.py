"""Parquet with declared columns: units and meanings in the metadata, checked both ways."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from moelaws.files.parquet import read_parquet, read_schema, write_parquet
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column
from moelaws.tables.schema import COLUMNS, IMPORTED_COLUMNS, SIMULATED_COLUMNS, TRAINED_COLUMNS

_ARROW = {"string": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
_text = partial(bytes.decode, errors="replace")


def write_table(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    path: Path,
    metadata: Mapping[str, str] = {},
    made_of: Mapping[str, Any] | None = None,
) -> None:
    """Writes ``frame`` atomically with exactly the declared columns, in their order.

    The bytes depend on the content alone: no time, no pandas index. ``made_of`` has the digests of
    the files that the table was made of. A missing or undeclared column, a wrong type, and a null
    in a column that may have none are refused.
    """
    names = [c.name for c in columns]
    missing = [name for name in names if name not in frame.columns]
    extra = [name for name in frame.columns if name not in names]
    if missing or extra:
        raise UserError(
            f"{path}: these columns are missing: {missing}; these are not declared: {extra}"
        )
    fields = [
        pa.field(c.name, _ARROW[c.type], c.nullable, {"unit": c.unit, "description": c.description})
        for c in columns
    ]
    # At first every column may have nulls, so that messages tell a missing value from a wrong type.
    types = pa.schema([field.with_nullable(True) for field in fields])
    try:
        table = pa.Table.from_pandas(frame[names], schema=types, preserve_index=False)
        _refuse_nulls(table, columns, path)
        table = table.cast(pa.schema(fields, metadata=dict(metadata)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    write_parquet(path, table, made_of)


def read_table(path: Path, columns: Sequence[Column] = ()) -> pd.DataFrame:
    """Reads the table at ``path``, which must have the given ``columns`` with their types.

    A damaged or foreign file, a missing column, a wrong type, and a wrong null are refused. A
    column that may have nulls may be missing, as in a table older than the column.
    """
    table = read_parquet(path)
    for column in columns:
        if column.name not in table.column_names and column.nullable:
            nulls = pa.nulls(table.num_rows, _ARROW[column.type])
            table = table.append_column(column.name, nulls)
        if column.name not in table.column_names:
            raise UserError(f"{path}: column {column.name!r} is missing ({column.description})")
        kind = table.schema.field(column.name).type
        if kind != _ARROW[column.type]:
            raise UserError(f"{path}: column {column.name!r} is {kind}; it must be {column.type}")
    _refuse_nulls(table, columns, path)
    # Without pandas' notes, which may be damaged, an index is an ordinary column.
    frame: pd.DataFrame = table.replace_schema_metadata().to_pandas()
    return frame


def read_study(path: Path) -> pd.DataFrame:
    """Reads a study's table, which must have each declared column with its type.

    A simulated table may lack the values that only a training measures, and an imported one those
    that its source does not have.
    """
    said = notes(path)
    if "simulation" in said:
        return read_table(path, SIMULATED_COLUMNS)
    if "imported" in said:
        return read_table(path, IMPORTED_COLUMNS)
    return read_table(path, [c for c in TRAINED_COLUMNS if c in COLUMNS or c.nullable])


def is_study(path: Path) -> bool:
    """Tells whether ``path`` is a Parquet file that says it is a study's table."""
    return "study" in notes(path)


def notes(path: Path) -> dict[str, str]:
    """Returns the metadata of a table; it is empty if ``path`` is no Parquet file."""
    try:
        metadata = read_schema(path).metadata or {}
    except UserError:
        return {}
    return {_text(key): _text(value) for key, value in metadata.items()}


def column_metadata(path: Path) -> dict[str, tuple[str, str]]:
    """Returns the unit and the description of each column that declares a unit."""
    return {
        field.name: (_text(said[b"unit"]), _text(said.get(b"description", b"")))
        for field in read_schema(path)
        if (said := field.metadata) and b"unit" in said
    }


def _refuse_nulls(table: pa.Table, columns: Sequence[Column], path: Path) -> None:
    for column in columns:
        if not column.nullable and (nulls := table[column.name].null_count):
            first = table[column.name].is_null().to_pylist().index(True)
            raise UserError(
                f"{path}: column {column.name!r} has {nulls} missing values, "
                f"the first in row {first}"
            )
