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
from moelaws.spec.errors import UserError, listed, or_nearest, quoted
from moelaws.spec.from_disk import refuse_large
from moelaws.spec.from_json import parse_json
from moelaws.spec.numbers import amount

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson", ".json")
_PAGE = ".md"
_TEXTS = (*_SEPARATORS, *_JSON, _PAGE)
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
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the file of a table")
    if not path.exists():
        raise UserError(f"{path}: no such table")
    if suffix not in (*_PARQUET, *_TEXTS):
        raise UserError(
            f"{path}: a table ends in one of {', '.join((*_PARQUET, *_TEXTS))}; a text may have "
            f"{_GZIP} behind that"
        )
    if part and suffix not in (".json", _PAGE):
        raise UserError(
            f"{path}: a part of it is {part!r}, but only .json and .md files have parts"
        )
    if path.is_file() and not path.stat().st_size:
        raise UserError(f"{path}: the file is empty")
    units: dict[str, str] = {}
    try:
        if suffix in _PARQUET:
            frame, units = _parquet(path)
        elif suffix == _PAGE:
            frame = _markdown(path, part)
        elif suffix in _JSON:
            frame = pd.json_normalize(_records(path, part))  # a nested value is a column a.b
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


def _text(path: Path) -> io.StringIO:
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


def _records(path: Path, part: str) -> list[dict[str, Any]]:
    """Returns the rows of a JSON file: one on each line, a list of them, a list in a part.

    An object of columns, as pandas writes a table by default, is a table as well.
    """
    file = _text(path)
    start = file.getvalue().lstrip()
    # A whole object is laid out over many lines, and its lines alone are no JSON.
    if part or start.startswith("[") or start.partition("\n")[0].strip() == "{":
        data = parse_json(start, path, missing=True)
        if isinstance(data, dict):
            if not part and (rows := _by_columns(data)):
                return rows
            lists = [key for key, value in data.items() if isinstance(value, list)]
            if part not in lists:
                asked = f"no list {part!r}" if part else "no rows but those of a part"
                raise UserError(f"{path} has {asked}{or_nearest(part, lists, 'its lists are')}")
            data = data[part]
        elif part:
            raise UserError(f"{path} is one list, which has no part {part!r}")
        records = [(f"{path}: item {i}", item) for i, item in enumerate(data, 1)]
    else:
        lines = [(f"{path}: line {i}", line) for i, line in enumerate(file, 1)]
        # pandas and others write NaN for missing values.
        records = [(w, parse_json(line, w, missing=True)) for w, line in lines if line.strip()]
    for where, record in records:
        if not isinstance(record, dict):
            raise UserError(
                f"{where}: {quoted(record)} is no JSON object, such as "
                '{"N": 1e9, "D": 2e10, "L": 2.6}'
            )
    rows = [record for _, record in records]
    return (_by_columns(rows[0]) if len(rows) == 1 else []) or rows


def _by_columns(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of equally long columns of cells, lists or by index; [] if it has others."""
    # One run's nested configuration may have as many keys in each part, but other ones.
    kinds = {tuple(x) if isinstance(x, dict) else isinstance(x, list) for x in data.values()}
    columns = [list(x.values()) if isinstance(x, dict) else x for x in data.values()]
    if len(kinds) != 1 or kinds == {False} or len(set(map(len, columns))) != 1:
        return []
    rows = [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]
    nested = any(isinstance(cell, dict | list) for row in rows for cell in row.values())
    return [] if nested else rows


def _markdown(path: Path, part: str) -> pd.DataFrame:
    """Returns the table below the heading ``part`` of a page, or without it the only one."""
    tables: dict[str, list[list[str]]] = {}  # heading, with the number of a second table -> rows
    seen, heading, name, is_code, is_open = Counter[str](), "", "", False, False
    for line in _text(path):
        text = line.strip()
        is_code ^= text.startswith("```")
        if not is_code and (title := re.match(r"#+\s+(.*?)[\s#]*$", text)):
            heading, is_open = title[1], False
        elif not is_code and text.startswith("|"):
            if not is_open:
                seen[heading] += 1
                name = f"{heading} ({seen[heading]})" if seen[heading] > 1 else heading
            is_open = True
            tables.setdefault(name, []).append(_cells(text))
        else:
            is_open = False
    if not part and len(tables) > 1:
        raise UserError(
            f"{path} has {len(tables)} tables, below {listed(map(repr, tables))}; say which with "
            f"{path.name}#HEADING (in a mapping: part)"
        )
    if not (lines := tables.get(part) if part else next(iter(tables.values()), None)):
        where = f"below a heading {part!r}" if part else "in it"
        near = or_nearest(part, filter(None, tables), "tables are below") if tables else ""
        raise UserError(f"{path}: there is no table {where}{near}")
    names, marks, rows = lines[0], lines[1] if len(lines) > 1 else [""], lines[2:]
    if not all(re.fullmatch(r":?-+:?", mark) for mark in marks):
        raise UserError(f"{path}: the table below {part or 'no heading'} has no line |---|---|")
    _refuse_twice(names, path)
    for i, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise UserError(
                f"{path}: row {i} of the table has {len(row)} cells, and its head has {len(names)}"
            )
    return pd.DataFrame([[cell or None for cell in row] for row in rows], columns=names)


def _cells(line: str) -> list[str]:
    """Returns the cells of a line of a Markdown table, without links and marks."""
    inner = re.sub(r"\|$", "", re.sub(r"^\|", "", line.replace(r"\|", "\0")))
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell) for cell in inner.split("|"))
    return [text.strip().strip("`*").strip().replace("\0", "|") for text in texts]


def _refuse_twice(names: Sequence[str], where: object) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UserError(f"{where}: column {listed(twice)} stands twice; rename one of them")
