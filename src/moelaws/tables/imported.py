"""A study's table from somebody else's runs, as a mapping file says (``spec.importing``)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws.files.parquet import read_origin, read_parquet, write_parquet
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.importing import Mapping
from moelaws.spec.study import DATASET, Study
from moelaws.tables.at_hand import imported_files, lacks_first
from moelaws.tables.column import Column
from moelaws.tables.foreign import as_numbers
from moelaws.tables.import_checks import LOSSES, check, check_copies, check_published, refuse_first
from moelaws.tables.mapping import columns_of, digest_of, joined_columns, read_mapping
from moelaws.tables.parquet import notes, read_study, write_table
from moelaws.tables.selected import select
from moelaws.tables.sources import read_sources

_TYPES = {"int": "Int64", "float": "float64", "string": "object"}
_SET_BY_IMPORT = ("study", "tier", "source")
NOTE = "imported"  # key in the file's metadata: JSON that says where its rows are from


@dataclass(frozen=True)
class Imported:
    """A study's table of imported runs."""

    # A row a run, with every column of a study's table and then the mapping's own; values that the
    # source does not have are missing
    frame: pd.DataFrame
    columns: tuple[Column, ...]  # what each of them holds, with units
    # The source's name, digest, address, licence and attribution, and the mapping's digest
    about: dict[str, str]
    study: str  # whose table it is

    def write(self, path: Path) -> None:
        """Writes Parquet, sealed, with units and with where the rows are from."""
        notes = {"study": self.study, NOTE: json.dumps(self.about)}
        write_table(self.frame, self.columns, path, notes)


def import_table(path: Path, mapping_file: Path) -> Imported:
    """Returns the table at ``path`` as a study's table, by the mapping in ``mapping_file``.

    ``path`` is a file, or the folder that holds the mapping's files under their names. A missing
    column, a cell of the wrong kind, a number out of range, a row or run that stands twice, and a
    completed run without a finite loss are refused.
    """
    mapping = read_mapping(mapping_file)
    sources, origin = read_sources(path, mapping.origin, mapping_file)
    about = origin | {"mapping": digest_of(mapping)}
    if mapping.public:
        about |= {"losses": mapping.public.losses, "assumed": " ".join(mapping.public.assumed)}
    with located(mapping_file, "sql"):
        frame = _table(select(mapping.sql, sources), mapping)
    with located(path):
        check(frame, mapping.notes)
        check_copies(frame, sources.values())
        if mapping.public:
            check_published(frame, mapping.public, mapping_file)
    return Imported(frame, columns_of(mapping), about, mapping.study)


def take(study: Study, path: Path, made_of: Any) -> int:
    """Writes the table that ``study`` ships to ``path``; returns the number of its runs.

    A study of the register has one table of those that are here. Their runs are named NAME/RUN.
    """
    if reason := lacks_first(study):
        raise UserError(reason)
    files, names = imported_files(study), study.imported.names if study.imported else ()
    mappings = {table: read_mapping(mapping) for table, mapping in files.items()}
    frames: list[pd.DataFrame] = []
    about: dict[str, str] = {}
    for table in filter(Path.is_file, files):
        origin, name = read_origin(table).get(NOTE), table.stem
        source = name if names else f"SOURCE --mapping {files[table]} --out {table}"
        again = f"make it again: moelaws import {source}"
        key = mappings[table].study if names else study.study
        if origin is None or notes(table).get("study") != key:
            raise UserError(f"{table}: this is no imported table of the study {key}; {again}")
        if origin["mapping"] != digest_of(mappings[table]):
            now = f"{files[table]} is now"
            raise UserError(f"{table} was imported by another mapping than {now}; {again}")
        frame, about[name] = read_study(table), f"{origin['licence']}: {origin['attribution']}"
        frame["study"], frame[DATASET] = study.study, name
        frame["run_id"] = f"{name}/" + frame["run_id"]
        frames.append(frame)
    if names:
        columns = joined_columns(mappings.values())
        joined = pd.concat(frames).reindex(columns=[column.name for column in columns])
        types = {column.name: _TYPES[column.type] for column in columns}
        note = {"study": study.study, NOTE: json.dumps(about)}
        write_table(joined.astype(types), columns, path, note, made_of)
    else:
        write_parquet(path, read_parquet(next(iter(files))), made_of)
    return sum(map(len, frames))


def _table(answer: pd.DataFrame, mapping: Mapping) -> pd.DataFrame:
    """Returns a study's table of the SQL's ``answer``, whose rows are numbered from 1."""
    columns = {column.name: column for column in columns_of(mapping)}
    known = [name for name in columns if name not in _SET_BY_IMPORT]
    for name in answer:
        if name not in known:
            near = or_nearest(name, known, "there are")
            raise UserError(f"a study's table has no column {name!r} to fill{near}")
    if lacking := [name for name in ("run_id", "status", *mapping.more) if name not in answer]:
        raise UserError(
            f"the SELECT must also give {', '.join(lacking)}; where all runs completed it says "
            "'completed' AS status, and where they have no names 'row-' || _row AS run_id"
        )
    if not len(answer):
        raise UserError("the SELECT gives no rows")
    answer.index = pd.RangeIndex(1, len(answer) + 1)
    frame = answer.apply(lambda cells: _filled(cells, columns[str(cells.name)]))
    losses = [name for name in LOSSES if name in frame]
    # as in the tables of runs trained here
    frame[losses] = frame[losses].where(frame["status"] == "completed")
    frame["study"], frame["source"] = mapping.study, "imported"
    types = {name: _TYPES[column.type] for name, column in columns.items()}
    return frame.reindex(columns=[*columns]).astype(types)


def _filled(cells: pd.Series, column: Column) -> pd.Series:
    """Returns cells as texts, as floats, or as floats that are whole numbers."""
    if column.type == "string":
        return cells.map(_word)
    values = pd.Series(as_numbers(cells), cells.index)
    refuse_first(
        values.isna() & cells.notna(),
        lambda row: f"column {column.name} is {cells[row]!r}; it must be a number",
    )
    return _whole(values, column.name) if column.type == "int" else values


def _word(cell: Any) -> str | None:
    """Returns a cell's text, without a point for whole numbers; None for a missing cell."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return None if cell is None else str(cell)


def _whole(values: pd.Series, name: str) -> pd.Series:
    whole = values.round()  # 1.001 M is 1000999.9999999999, and 64 bits hold no more than 9.2e18
    is_whole = np.isclose(values, whole, rtol=1e-9, atol=0) & (values.abs() < 9e18)
    refuse_first(
        values.notna() & ~is_whole,
        lambda row: (
            f"{name} is {values[row]:.17g}; it must be a whole number below 9e18, as round(...) "
            "makes it"
        ),
    )
    return whole
