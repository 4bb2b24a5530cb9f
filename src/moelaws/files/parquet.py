"""Parquet files of this package: written atomically, sealed, and refused where they are damaged.

No pandas is needed, for a training loads none. What a file was made of stands in the footer, as
JSON beside the seal.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from moelaws.files import seal
from moelaws.files.atomic import replacing
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json

_ORIGIN = "made_of"
_IMPORTED = "imported"
# What Arrow raises for bytes that are no Parquet file, or one of a kind that it does not know.
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError, ValueError)


def write_parquet(path: Path, table: pa.Table, made_of: Mapping[str, Any] | None = None) -> str:
    """Writes ``table``, and what it was made of, to ``path``; returns the file's digest.

    The bytes depend on the content alone.
    """
    words = {seal.KEY: seal.BLANK, _ORIGIN: json.dumps(made_of or {})}
    with replacing(path) as temporary:
        with pq.ParquetWriter(temporary, table.schema, compression="zstd") as writer:
            writer.write_table(table)
            # In the footer alone: a schema's own metadata would hold the blank a second time.
            writer.add_key_value_metadata(words)
        return seal.apply(temporary)


def read_parquet(path: Path) -> pa.Table:
    """Returns the table at ``path``."""
    try:
        return pq.ParquetFile(pa.BufferReader(seal.read(path))).read()
    except FileNotFoundError:
        raise UserError(f"{path}: no such table; run the workflow first") from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def read_origin(path: Path) -> dict[str, Any]:
    """Returns what the table at ``path`` was made of; nothing where it does not say.

    Of an imported table ``imported`` says whose file it was made of.
    """
    try:
        words = pq.read_metadata(pa.BufferReader(seal.read(path))).metadata or {}
    except FileNotFoundError:
        raise UserError(f"{path}: no such table; run the workflow first") from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    origin: dict[str, Any] = parse_json(words.get(_ORIGIN.encode(), "{}"), path)
    if foreign := words.get(_IMPORTED.encode()):
        origin["imported"] = parse_json(foreign, path)
    return origin


def unreadable(path: Path, error: Exception) -> UserError:
    """Returns what to raise for a file that Arrow cannot read: its reason on one line."""
    reason = " ".join(str(error).split())
    return UserError(f"{path} is no readable Parquet file, or it was cut short: {reason}")
