"""Reads anybody's table: Parquet, CSV, TSV or JSON lines; texts may be compressed by gzip."""

import csv
import gzip
import io
import math
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.files import seal
from moelaws.spec.errors import UserError, listed, quoted
from moelaws.spec.from_disk import refuse_large
from moelaws.spec.from_json import parse_json
from moelaws.spec.numbers import amount

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_LINES = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_GZIP = ".gz"
_LONGEST = 2**28  # bytes of a text, whose table takes several times as many


def read_any(path: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Reads the table at ``path`` by its suffix, and the unit of each column that declares one.

    Only Parquet tables declare units. A study's own table is checked against its declared columns.
    An empty, cut or foreign file is refused, and so is a table without rows or with two columns of
    one name.
    """
    suffix = _suffix(path)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the file of a table")
    if not path.exists():
        raise UserError(f"{path}: no such table")
    if suffix not in (*_PARQUET, *_SEPARATORS, *_LINES):
        raise UserError(
            f"{path}: a table ends in one of {', '.join((*_PARQUET, *_SEPARATORS, *_LINES))}; a "
            f"text may have {_GZIP} behind that"
        )
    if path.is_file() and not path.stat().st_size:
        raise UserError(f"{path}: the file is empty")
    units: dict[str, str] = {}
    try:
        if suffix in _PARQUET:
            frame, units = _parquet(path)
        elif suffix in _LINES:
            frame = _json_lines(path)
        else:
            frame = _separated(path, _SEPARATORS[suffix])
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(f"{path}: byte 0x{byte:02x} is not UTF-8; save it as UTF-8 text") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{path}: the compressed file is cut or damaged: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not len(frame):
        raise UserError(f"{path} has column names and no rows")
    return frame, units


def as_numbers(cells: pd.Series) -> NDArray[np.float64]:
    """Returns cells (rows,) as numbers; those that are empty or no number are NaN."""
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
        return cells.to_numpy(float, na_value=np.nan)
    return np.array([_as_number(cell) for cell in cells.astype(object)], float)


def no_number(cells: pd.Series, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tells which cells (rows,) have a value that :func:`as_numbers` could not read."""
    return np.isnan(values) & cells.notna().to_numpy(bool)


def numbers(frame: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Returns the columns of numbers, (rows,) each, with NaN for missing values; no booleans."""
    read = {str(name): as_numbers(frame[name]) for name in frame}
    return {name: x for name, x in read.items() if not no_number(frame[name], x).any()}


def columns(frame: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Returns all columns, (rows,) each: those of numbers, and others as texts or NaN."""
    texts = {str(n): frame[n].astype(str).where(frame[n].notna(), np.nan) for n in frame}
    return {n: cells.to_numpy(object) for n, cells in texts.items()} | numbers(frame)


def refuse_twice(cells: pd.Series, text: Callable[[Any], str]) -> None:
    """Raises a ``UserError`` with the ``text`` of the first cell that two rows have, if any do."""
    again = cells.duplicated()
    if again.any():
        first, second = cells.index[cells == cells[again].iloc[0]][:2]
        raise UserError(f"rows {first} and {second} {text(cells[second])}")


def _as_number(cell: object) -> float:
    """Returns a cell's number, of a whole number of any length too, and of a text ``amount``."""
    try:
        if isinstance(cell, str):
            return amount(cell)
        return math.nan if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _parquet(path: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    from moelaws.files.parquet import read_schema
    from moelaws.tables.parquet import column_metadata, is_study, read_study, read_table

    _refuse_twice(read_schema(path).names, path)
    frame = read_study(path) if is_study(path) else read_table(path)
    return frame, {name: unit for name, (unit, _) in column_metadata(path).items()}


def _suffix(path: Path) -> str:
    """Returns the suffix that tells the kind of table; in a compressed text it precedes .gz."""
    inner = Path(path.stem).suffix.lower()
    is_text = inner in (*_SEPARATORS, *_LINES)
    return inner if path.suffix.lower() == _GZIP and is_text else path.suffix.lower()


def _text(path: Path) -> TextIO:
    """Returns the text of a table, unpacked, with its lines' ends as they are."""
    data = seal.read(path, _LONGEST)
    if path.suffix.lower() == _GZIP:
        with gzip.open(io.BytesIO(data)) as packed:
            data = packed.read(_LONGEST + 1)
        refuse_large(len(data), f"{path}, unpacked,", _LONGEST)
    return io.StringIO(data.decode("utf-8-sig"), newline="")


def _separated(path: Path, separator: str) -> pd.DataFrame:
    file = _text(path)
    lines = csv.reader(file, delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in next(lines, [])]
    others = [mark for mark in (",", ";", "\t") if mark != separator and mark in "".join(names)]
    if len(names) < 2:
        kind = "tabs" if separator == "\t" else "commas"
        seen = f"; {others[0]!r} seems to separate them" if others else ""
        raise UserError(
            f"{path} has one column alone, {quoted(''.join(names))}{seen}; the columns of a "
            f"{_suffix(path)} file must be separated by {kind} (tabs in .tsv, commas in .csv)"
        )
    if not np.isnan(as_numbers(pd.Series(names))).any():
        raise UserError(
            f"{path} has no column names; the first line must hold them, and it is "
            f"{separator.join(names)[:60]!r}"
        )
    _refuse_twice([name for name in names if name], path)  # a spreadsheet's empty columns have none
    try:
        with warnings.catch_warnings():  # a row longer than the header would be cut with a warning
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # cells are judged where used
            file.seek(0)
            frame = pd.read_csv(file, sep=separator, index_col=False, skipinitialspace=True)
            return frame.rename(columns=str.strip)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise UserError(
            f"{path}: rows and column names do not match: {str(error).strip()}"
        ) from None


def _json_lines(path: Path) -> pd.DataFrame:
    records = []
    for i, line in enumerate(_text(path), 1):
        if not line.strip():
            continue
        if i == 1 and line.lstrip().startswith("["):
            raise UserError(
                f"{path} is a JSON array; it must have one object on each line, as "
                "`jq -c '.[]'` writes them"
            )
        where = f"{path}: line {i}"
        # pandas and others write NaN for missing values.
        record = parse_json(line, where, missing=True)
        if not isinstance(record, dict):
            raise UserError(
                f"{where}: {line.strip()[:60]} is no JSON object, such as "
                '{"N": 1e9, "D": 2e10, "L": 2.6}'
            )
        records.append(record)
    return pd.DataFrame(records)


def _refuse_twice(names: Sequence[str], where: object) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UserError(f"{where}: column {listed(twice)} stands twice; rename one of them")
