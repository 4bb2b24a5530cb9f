"""Parquet files of this package: written atomically, sealed, and refused if they are damaged.

They need no pandas. The footer holds the seal and, as JSON, what the file was made of.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from moelaws.files import seal
from moelaws.files.atomic import replacing
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import LARGEST, refuse_large
from moelaws.spec.from_json import parse_json

_ORIGIN = "made_of"
_IMPORTED = "imported"
# A table has at most so many cells, for few bytes may stand for more than fit into memory.
MOST_CELLS = 10**8
# What Arrow raises for bytes that are not a Parquet file, or not one of a kind that it knows
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, ValueError)


def write_parquet(path: Path, table: pa.Table, made_of: Mapping[str, Any] | None = None) -> str:
    """Writes ``table``, and what it was made of, to ``path``; returns the file's digest.

    Equal content gives equal bytes.
    """
    words = {seal.KEY: seal.blank(path), _ORIGIN: json.dumps(made_of or {})}
    with replacing(path) as temporary:
        with pq.ParquetWriter(temporary, table.schema, compression="zstd") as writer:
            writer.write_table(table)
            # Not in the schema's own metadata, which would hold the blank seal a second time.
            writer.add_key_value_metadata(words)
        return seal.apply(temporary)


def read_parquet(path: Path) -> pa.Table:
    """Returns the table at ``path``, which must be whole and lie in its own place."""
    return _opened(path, partial(_read, path))


def read_schema(path: Path) -> pa.Schema:
    """Returns the columns of the table at ``path``, and its notes and theirs."""
    return _opened(path, pq.read_schema)


def _read(path: Path, file: pa.BufferReader) -> pa.Table:
    opened = pq.ParquetFile(file)
    about = opened.metadata
    if (cells := about.num_rows * about.num_columns) > MOST_CELLS:
        raise UserError(f"{path} has {cells:,} cells; at most {MOST_CELLS:,} are read")
    groups = (about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    refuse_large(sum(groups), f"{path}, unpacked,", 4 * LARGEST)
    # A text that stands once in the file may stand in every row of the table. So texts are read as
    # numbers of different texts first.
    plain = opened.schema_arrow
    texts = [field.name for field in plain if _is_text(field.type)]
    table = pq.ParquetFile(file, read_dictionary=texts).read()
    refuse_large(sum(map(_length, table.columns)), f"{path}, unpacked,", 4 * LARGEST)
    return table.cast(plain)


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _length(column: pa.ChunkedArray) -> int:
    """Returns the bytes of all texts of a column that was read as a dictionary, 0 of another."""
    if not (pa.types.is_dictionary(column.type) and _is_text(column.type.value_type)):
        return 0
    each = (pc.binary_length(part.dictionary).take(part.indices) for part in column.chunks)
    return sum(pc.sum(lengths).as_py() or 0 for lengths in each)


def read_origin(path: Path) -> dict[str, Any]:
    """Returns what the table at ``path`` was made of; empty if it does not say.

    For an imported table, ``imported`` describes the source file.
    """
    words = _opened(path, pq.read_metadata).metadata or {}
    origin = parse_json(words.get(_ORIGIN.encode(), "{}"), path)
    if not isinstance(origin, dict):
        raise UserError(f"{path}: its metadata {_ORIGIN} are no keys and values, as moelaws writes")
    if foreign := words.get(_IMPORTED.encode()):
        origin["imported"] = parse_json(foreign, path)
    return origin


def _opened(path: Path, read: Callable[[pa.BufferReader], Any]) -> Any:
    """Returns what ``read`` makes of the file at ``path``, which must match its seal."""
    try:
        return read(pa.BufferReader(seal.read(path)))
    except FileNotFoundError:
        raise UserError(f"{path}: no such table; run the workflow first") from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> UserError:
    """Returns the error to raise for a file that Arrow cannot read, its reason on one line."""
    reason = " ".join(str(error).split())
    return UserError(f"{path} is no readable Parquet file, or it was cut short: {reason}")
