"""A study's table from somebody else's runs, as a mapping file says (``spec.importing``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.laws.base import NOT_NEGATIVE, POSITIVE, Array, Domain, Variable
from moelaws.laws.vocabulary import (
    MAX_LOSS,
    SOME_ROW_ABOVE,
    USUAL_UNITS,
    VOCABULARY,
    factor,
    refuse_unit,
)
from moelaws.records.parquet import read_origin, read_parquet, write_parquet
from moelaws.spec.errors import UserError, located, or_nearest
from moelaws.spec.expressions import evaluate, names
from moelaws.spec.importing import Further, Mapping, Values
from moelaws.spec.rows import select
from moelaws.spec.study import Study
from moelaws.tables.column import Column
from moelaws.tables.foreign import read_any
from moelaws.tables.mapping import columns_of, digest_of, read_mapping
from moelaws.tables.parquet import notes, read_study, write_table
from moelaws.tables.schema import IMPORTED_COLUMNS

STATUSES = ("completed", "diverged", "out_of_memory")
NOTE = "imported"  # of the file: JSON of where its rows are from
_NUMBERS = ("int", "float")
_ABOVE_0 = ("parameters", "tokens", "FLOP", "heads", "steps")
_ABOVE_0_NAMES = ("L", "bpb", "L_train", "lr", "n_layers", "d_model", "d_expert")
# Of two columns of one row the first is never the greater.
_ORDERED = (
    ("k", "E"),
    ("N_active", "N_total"),
    ("N_active_nonemb", "N_total_nonemb"),
    ("N_active_nonemb", "N_active"),
    ("N_total_nonemb", "N_total"),
)


@dataclass(frozen=True)
class Imported:
    """A study's table of imported runs.

    Attributes:
        frame: a row a run, with every column of a study's table, then those of the mapping's own;
            what the source does not know is missing.
        columns: what each of them holds, with units.
        about: the source's name, digest, address, licence and attribution, and the mapping's
            digest.
    """

    frame: pd.DataFrame
    columns: tuple[Column, ...]
    about: dict[str, Any]

    @property
    def study(self) -> str:
        """The study that the table is of."""
        return str(self.frame["study"].iloc[0])

    def write(self, path: Path) -> None:
        """Writes Parquet, sealed, with units and with where the rows are from."""
        notes = {"study": self.study, NOTE: json.dumps(self.about)}
        write_table(self.frame, self.columns, path, notes)


def import_table(path: Path, mapping_file: Path) -> Imported:
    """Returns the table at ``path`` as a study's table, by the mapping in ``mapping_file``.

    Raises:
        UserError: for a mistake in the mapping, a file that is not the mapping's, and for all that
            no table of ours may hold: a missing column, a cell of the wrong kind, a number out of
            range, a row or a run that stands twice, a completed run without a finite loss.
    """
    mapping = read_mapping(mapping_file)
    source, units = read_any(path)
    about = _about(path, mapping, mapping_file)
    source.index = pd.RangeIndex(1, len(source) + 1)  # rows as messages count them
    reader = _Reader(mapping, mapping_file, source, units)
    with located(mapping_file):
        kept = reader.kept()
        if not len(kept):
            raise UserError(f"rows and only keep none of the {len(source)} rows of {path}")
    frame = replace(reader, source=kept).table()
    with located(path):
        _check(frame, kept)
    columns = columns_of(mapping)
    return Imported(frame.reset_index(drop=True), columns, about)


def take(study: Study, path: Path, made_of: Any) -> int:
    """Writes the table that ``study`` ships to ``path``; returns the number of its runs.

    Raises:
        UserError: for a damaged or foreign table, and for one of another study or mapping.
    """
    table, mapping = study.imported_files
    runs = len(read_study(table))
    origin = read_origin(table).get(NOTE)
    again = f"make it again: moelaws import SOURCE --mapping {mapping} --out {table}"
    if origin is None or notes(table).get("study") != study.study:
        raise UserError(f"{table}: this is no imported table of the study {study.study}; {again}")
    if origin["mapping"] != digest_of(read_mapping(mapping)):
        raise UserError(f"{table} was imported by another mapping than {mapping} is now; {again}")
    write_parquet(path, read_parquet(table), made_of)
    return runs


def _about(path: Path, mapping: Mapping, mapping_file: Path) -> dict[str, Any]:
    origin = mapping.origin
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    if origin.sha256 not in ("", sha):
        raise UserError(
            f"{path}: its SHA-256 is {sha}, and {mapping_file} is for {origin.file} of "
            f"{origin.sha256}; get that file" + (f" from {origin.url}" if origin.url else "")
        )
    return {**origin.model_dump(mode="json"), "sha256": sha, "mapping": digest_of(mapping)}


@dataclass(frozen=True)
class _Reader:
    """A foreign table as a mapping reads it; rows go by their number in the file (the index)."""

    mapping: Mapping
    file: Path
    source: pd.DataFrame
    units: dict[str, str]

    def kept(self) -> pd.DataFrame:
        """The rows that the mapping keeps, in the source's order."""
        mask = np.broadcast_to(
            select(_numbers(self.source), self.mapping.rows), len(self.source)
        ).copy()
        for column, words in self.mapping.only.items():
            self._require(column)
            mask &= self.source[column].map(_word).isin([_word(word) for word in words]).to_numpy()
        kept = self.source[mask]
        return replace(self, source=kept)._last() if self.mapping.last else kept

    def _last(self) -> pd.DataFrame:
        """Of the rows of each run the one that is last by the mapping's column."""
        name = self.mapping.last
        if "run_id" not in self.mapping.columns:
            raise UserError(f"last is {name}, but columns.run_id does not say which run a row is")
        with located("last"):
            self._require(name)
            steps = self._number(name)
            if steps.isna().any():
                raise UserError(f"column {name} is empty in row {steps.index[steps.isna()][0]}")
        runs = self._column("run_id", self.mapping.columns["run_id"], "string")
        return self.source[(steps == steps.groupby(runs).transform("max")).to_numpy()]

    def table(self) -> pd.DataFrame:
        """A study's table of the source's rows."""
        frame = pd.DataFrame(index=self.source.index)
        entries: dict[str, Values | Further] = {**self.mapping.columns, **self.mapping.more}
        types = {column.name: column for column in columns_of(self.mapping)}
        # Expressions come last, in their order, for they may name the columns before them.
        for name in sorted(entries, key=lambda name: bool(entries[name].expression)):
            section = "more" if name in self.mapping.more else "columns"
            with located(self.file, section, name):
                if entries[name].expression:
                    frame[name] = self._computed(entries[name].expression, frame, types[name])
                else:
                    frame[name] = self._filled(name, entries[name], types[name])
        frame["study"], frame["source"] = self.mapping.study, "imported"
        if "run_id" not in frame:
            frame["run_id"] = [f"row-{row}" for row in frame.index]
        missing = {n: _empty(c, frame.index) for n, c in types.items() if n not in frame}
        return pd.concat([frame, pd.DataFrame(missing, index=frame.index)], axis=1)[[*types]]

    def _filled(self, name: str, entry: Values | Further, column: Column) -> pd.Series:
        values = self._column(name, entry, column.type)
        if column.type == "string":
            return values
        if entry.column and isinstance(entry, Values):
            variable = Variable(name, column.unit, "")
            refuse_unit(variable, entry.column, self.units.get(entry.column), entry.unit or None)
            values = values * (factor(variable, entry.unit) if entry.unit else 1.0)
        return _typed(values, column)

    def _column(self, name: str, entry: Values | Further, kind: str) -> pd.Series:
        """The values of an entry that computes nothing, as texts or as floats."""
        if entry.value is not None:
            values = pd.Series([entry.value] * len(self.source), self.source.index, dtype=object)
        else:
            self._require(entry.column)
            values = self.source[entry.column]
            if entry.values:
                values = self._translated(values, entry)
        if kind == "string":
            return values.map(_word).astype(object)
        return self._as_numbers(values, entry.column or name)

    def _translated(self, cells: pd.Series, entry: Values | Further) -> pd.Series:
        known = {_word(theirs): ours for theirs, ours in entry.values.items()}
        words = cells.map(_word)
        for row, word in words[~words.isin(list(known)) & cells.notna()].items():
            raise UserError(
                f"row {row}: column {entry.column} is {word!r}, which values does not translate; "
                f"it has {', '.join(map(str, known))}; only or rows can leave such rows out"
            )
        return words.map(known)

    def _computed(self, expression: str, frame: pd.DataFrame, column: Column) -> pd.Series:
        given = _numbers(frame) | _numbers(self.source)  # a name of both is the source's
        values = evaluate(expression, given)
        known = np.ones(len(values), bool)
        for name in names(expression):
            known &= ~np.isnan(given[name])
        if (wrong := ~np.isfinite(values) & known).any():
            row = int(np.argmax(wrong))
            raise UserError(
                f"row {frame.index[row]}: {expression} is {values[row]}; it must be a finite number"
            )
        return _typed(pd.Series(values, frame.index), column)

    def _number(self, name: str) -> pd.Series:
        return self._as_numbers(self.source[name], name)

    def _as_numbers(self, cells: pd.Series, name: str) -> pd.Series:
        values = pd.to_numeric(cells, errors="coerce").astype(float)
        bad = values.isna() & cells.notna() | cells.map(lambda cell: isinstance(cell, bool))
        for row in bad[bad].index:
            raise UserError(f"row {row}: column {name} is {cells[row]!r}; it must be a number")
        return values

    def _require(self, column: str) -> None:
        if column not in self.source:
            known = or_nearest(column, map(str, self.source.columns), "the table has")
            raise UserError(f"the table has no column {column!r}{known}")


def _numbers(frame: pd.DataFrame) -> dict[str, Array]:
    numeric = frame.select_dtypes("number")
    return {str(n): numeric[n].to_numpy(float, na_value=np.nan) for n in numeric}


def _word(cell: Any) -> str | None:
    """A cell's text; a whole number has no point, missing cells have none."""
    if isinstance(cell, float | np.floating):
        return None if np.isnan(cell) else str(int(cell)) if cell.is_integer() else str(cell)
    return None if cell is None or cell is pd.NA else str(cell)


def _typed(values: pd.Series, column: Column) -> pd.Series:
    if column.type != "int":
        return values.astype("float64")
    for row in values.index[values.notna() & (values % 1 != 0)]:
        raise UserError(f"row {row}: the value is {values[row]:.17g}; it must be a whole number")
    return values.astype("Int64")


def _empty(column: Column, index: pd.Index) -> pd.Series:
    return pd.Series(
        pd.NA if column.type == "int" else np.nan if column.type == "float" else None,
        index,
        dtype={"int": "Int64", "float": "float64"}.get(column.type, "object"),
    )


def _domain(column: Column) -> Domain:
    if column.name in VOCABULARY:
        return VOCABULARY[column.name].domain
    above_0 = column.unit in _ABOVE_0 or column.name in _ABOVE_0_NAMES
    return POSITIVE if above_0 else NOT_NEGATIVE


def _check(frame: pd.DataFrame, source: pd.DataFrame) -> None:
    """Refuses what no table of ours holds; rows go by their number in the source."""
    _refuse_twice(frame, source)
    for row, status in frame["status"].items():
        if status not in STATUSES:
            raise UserError(
                f"row {row}: status is {status!r}; it must be one of {', '.join(STATUSES)}; a "
                "mapping says it under columns.status, by value or by values"
            )
    for column in IMPORTED_COLUMNS:
        if column.type in _NUMBERS:
            _check_range(frame, column)
    for less, more in _ORDERED:
        for row in frame.index[(frame[less] > frame[more]).fillna(False).to_numpy(bool)]:
            raise UserError(
                f"row {row}: {less} is {frame[less][row]} and above {more}, {frame[more][row]}"
            )
    completed = frame["status"] == "completed"
    for row in frame.index[completed & frame["L"].isna()]:
        raise UserError(
            f"row {row} (run {frame['run_id'][row]}): the loss L is missing, and its status is "
            "completed; leave such rows out by rows or only, or give them another status"
        )
    if (typical := frame["L"][completed].median()) > MAX_LOSS:
        raise UserError(
            f"the loss L is {typical:.6g} nats/token in the median row, more than any vocabulary "
            "gives; a perplexity p becomes a loss by the expression ln(p)"
        )


def _check_range(frame: pd.DataFrame, column: Column) -> None:
    domain = _domain(column)
    values = frame[column.name].to_numpy(float, na_value=np.nan)
    known = ~np.isnan(values)
    if (wrong := known & ~domain.holds(values)).any():
        row = int(np.argmax(wrong))
        raise UserError(
            f"row {frame.index[row]} (run {frame['run_id'].iloc[row]}): {column.name} is "
            f"{values[row]:.6g}; it must be {domain.text}"
        )
    least = SOME_ROW_ABOVE.get(column.unit, 0.0)
    counts = column.name in ("D", *(n for n in frame if str(n).startswith(("N_", "C"))))
    if counts and known.any() and values[known].max() < least:
        raise UserError(
            f"{column.name} is at most {values[known].max():.6g} {column.unit}; say the unit of "
            f"its column in the mapping, such as {{column: ..., unit: {USUAL_UNITS[column.unit]}}}"
        )


def _refuse_twice(frame: pd.DataFrame, source: pd.DataFrame) -> None:
    for cells, what in (
        (frame["run_id"], "are of one run, {}; a table holds one row for each run: last keeps one"),
        (_lines(source), "are the same in every column"),
    ):
        for row in cells.index[_again(cells)]:
            first = cells.index[(cells == cells[row]).to_numpy(bool)][0]
            raise UserError(f"rows {first} and {row} {what.format(cells[row])}")


def _again(cells: pd.Series) -> NDArray[np.bool_]:
    return cells.duplicated().to_numpy(bool)


def _lines(source: pd.DataFrame) -> pd.Series:
    rows: Sequence[tuple[Any, ...]] = list(source.itertuples(index=False, name=None))
    return pd.Series([repr(row) for row in rows], source.index)
