"""Reads anybody's table: Parquet, CSV, TSV, JSON or Markdown; texts may be compressed by gzip."""

import csv
import gzip
import io
import math
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.files import seal
from moelaws.spec.errors import UserError, listed, nearest, or_nearest, quoted
from moelaws.spec.from_disk import refuse_large
from moelaws.spec.from_json import parse_json
from moelaws.spec.numbers import amount

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".md")
_WITH_PARTS = (".json", ".md")
_PARQUET = (".parquet", ".pq")
_GZIP = ".gz"
_LONGEST = 2**28  # bytes of a text, whose table takes several times as many


def read_any(path: Path, part: str = "") -> tuple[pd.DataFrame, dict[str, str]]:
    """Reads the table at ``path`` by its suffix, and the unit of each column that declares one.

    ``part`` is the key of a JSON object, or the heading of a Markdown page, below which the
    rows are; it may stand behind the file's name, ``page.md#Heading``. Only Parquet tables
    declare units. A study's own table is checked against its declared columns. An empty, cut or
    foreign file is refused, and so is a table without rows or with two columns of one name.
    """
    path, part = file_and_part(path, part)
    suffix = _suffix(path)
    if suffix not in (*_PARQUET, *_TEXTS):
        raise UserError(
            f"{path}: a table ends in one of {', '.join((*_PARQUET, *_TEXTS))}; a text may have "
            f"{_GZIP} behind that"
        )
    if part and suffix not in _WITH_PARTS:
        raise UserError(f"{path}: its part is {part!r}, but only .json and .md files have parts")
    units: dict[str, str] = {}
    try:
        if suffix in _PARQUET:
            frame, units = _parquet(path)
        elif suffix == ".md":
            frame = _markdown(path, part)
        elif suffix in (".csv", ".tsv"):
            frame = _separated(path)
        else:
            frame = _json(path, part)
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, pd.errors.ParserWarning) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read: {reason}") from None
    if not len(frame):
        raise UserError(f"{path} has no rows")
    return frame, units


def file_and_part(path: Path, part: str = "") -> tuple[Path, str]:
    """Returns a table's file and the part of it that is asked for, as of ``page.md#Heading``."""
    if path.exists() or "#" not in path.name:
        return path, part
    name, _, part = path.name.partition("#")
    return path.with_name(name), part


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
    known = numbers(frame)
    return {
        str(n): known[str(n)]
        if str(n) in known
        else frame[n].astype(str).where(frame[n].notna(), np.nan).to_numpy(object)
        for n in frame
    }


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
    return inner if path.suffix.lower() == _GZIP and inner in _TEXTS else path.suffix.lower()


def _text(path: Path) -> str:
    """Returns the text of a table, unpacked, with its lines' ends as they are."""
    data = seal.read(path, _LONGEST)
    if path.suffix.lower() == _GZIP:
        with gzip.open(io.BytesIO(data)) as packed:
            data = packed.read(_LONGEST + 1)
        refuse_large(len(data), f"{path}, unpacked,", _LONGEST)
    return data.decode("utf-8-sig")


def _separated(path: Path) -> pd.DataFrame:
    """Returns the table of a text, by the mark that its first line has most often."""
    text = _text(path)
    (header,) = re.findall(r"\A[^\r\n]*", text)
    separator = max(",;\t", key=header.count)
    lines = csv.reader([header], delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in next(lines, [])]
    if len(names) < 2:
        raise UserError(
            f"{path} has one column alone, {quoted(header)}; commas, semicolons or tabs must "
            "separate columns"
        )
    if not np.isnan(as_numbers(pd.Series(names))).any():
        raise UserError(
            f"{path} has no column names; the first line must hold them, and it is {header[:60]!r}"
        )
    _refuse_twice([name for name in names if name], path)  # a spreadsheet's empty columns have none
    with warnings.catch_warnings():  # a row longer than the header would be cut with a warning
        warnings.simplefilter("error", pd.errors.ParserWarning)
        file = io.StringIO(text, newline="")
        return pd.read_csv(
            file, sep=separator, index_col=False, skipinitialspace=True, low_memory=False
        ).rename(columns=str.strip)


def _json(path: Path, part: str) -> pd.DataFrame:
    """Returns the rows of a JSON file: one on each line, a list of them, a list in a part.

    An object of columns, as pandas writes a table by default, is a table as well. A nested value
    is a column a.b.
    """
    text = _text(path).lstrip()
    # A whole object is laid out over many lines, and its lines alone are no JSON.
    if part or text.startswith("[") or text.partition("\n")[0].strip() == "{":
        data = parse_json(text, path, missing=True)  # pandas and others write NaN
    else:
        lines = enumerate(text.split("\n"), 1)
        data = [
            parse_json(line, f"{path}: line {i}", missing=True) for i, line in lines if line.strip()
        ]
    if part:
        parts = data if isinstance(data, dict) else {}
        lists = [key for key, value in parts.items() if isinstance(value, list)]
        if part not in lists:
            near = or_nearest(part, lists, "its lists are")
            raise UserError(f"{path} has no list {part!r}{near}")
        data = parts[part]
    rows = data if isinstance(data, list) else [data]
    for i, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UserError(f"{path}: row {i} is {quoted(row)}; it must be an object of JSON")
    if len(rows) == 1 and _is_of_columns(rows[0]):
        return pd.DataFrame(rows[0]).reset_index(drop=True)
    return pd.json_normalize(rows)


def _is_of_columns(data: dict[str, Any]) -> bool:
    """Tells whether an object has equally long columns of cells, all lists or all by one index."""
    columns = [*data.values()]
    # One run's nested configuration may have as many keys in each part, but other ones.
    kinds = {tuple(x) if isinstance(x, dict) else isinstance(x, list) for x in columns}
    if len(kinds) != 1 or kinds == {False} or len(set(map(len, columns))) != 1:
        return False
    cells = [cell for x in columns for cell in (x.values() if isinstance(x, dict) else x)]
    return not any(isinstance(cell, dict | list) for cell in cells)


def _markdown(path: Path, part: str) -> pd.DataFrame:
    """Returns the table below the heading ``part`` of a page, or without it the only one."""
    page = re.sub(r"^[ \t]*```.*?^[ \t]*```", "", _text(path), flags=re.MULTILINE | re.DOTALL)
    first, *sections = re.split(r"^#+[ \t]+(.*)$", page, flags=re.MULTILINE)
    headings = ["", *(heading.strip("# \t\r") for heading in sections[::2])]
    tables, seen = dict[str, str](), Counter[str]()
    for heading, section in zip(headings, [first, *sections[1::2]], strict=True):
        for table in re.findall(r"(?:^[ \t]*\|.*\n?)+", section, re.MULTILINE):
            seen[heading] += 1
            name = f"{heading} ({seen[heading]})" if seen[heading] > 1 else heading
            tables[name] = table
    if not part and len(tables) == 1:
        (part,) = tables
    elif not part or part not in tables:
        known = listed(map(repr, tables)) or "none"
        raise UserError(
            f"{path}: say which table with {path.name}#HEADING (in a mapping: part); tables are "
            f"below {known}{nearest(part, tables)}"
        )
    names, *rows = map(_cells, tables[part].strip().split("\n"))
    if not rows or not all(re.fullmatch(r":?-+:?", mark) for mark in rows[0]):
        raise UserError(f"{path}: the table below {part or 'no heading'} has no line |---|---|")
    _refuse_twice(names, path)
    return pd.DataFrame([[cell or None for cell in row] for row in rows[1:]], columns=names)


def _cells(line: str) -> list[str]:
    """Returns the cells of a line of a Markdown table, without links and marks."""
    inner = line.strip().replace(r"\|", "\0").removeprefix("|").removesuffix("|")
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell) for cell in inner.split("|"))
    return [text.strip().strip("`*").strip().replace("\0", "|") for text in texts]


def _refuse_twice(names: Sequence[str], where: object) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UserError(f"{where}: column {listed(twice)} stands twice; rename one of them")
