"""A study's table from somebody else's runs, as a mapping file says (``spec.importing``)."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from moelaws.files.parquet import read_origin, read_parquet, write_parquet
from moelaws.laws.base import Variable
from moelaws.laws.vocabulary import factor, refuse_unit
from moelaws.spec.errors import UserError, located, or_nearest, quoted
from moelaws.spec.expressions import evaluate, names
from moelaws.spec.importing import Further, Mapping, Values
from moelaws.spec.rows import select
from moelaws.spec.study import DATASET, Study
from moelaws.tables.at_hand import imported_files, lacks_first
from moelaws.tables.column import Column
from moelaws.tables.foreign import as_numbers, columns, numbers
from moelaws.tables.import_checks import LOSSES, as_lines, check, check_published, refuse_first
from moelaws.tables.mapping import columns_of, digest_of, joined_columns, read_mapping
from moelaws.tables.parquet import notes, read_study, write_table
from moelaws.tables.sources import read_source

_TYPES = {"int": "Int64", "float": "float64", "string": "object"}
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
    source, units, origin = read_source(path, mapping.origin, mapping_file)
    about = origin | {"mapping": digest_of(mapping)}
    if mapping.public:
        about |= {"losses": mapping.public.losses, "assumed": " ".join(mapping.public.assumed)}
    reader = _Reader(mapping, mapping_file, source, units)
    with located(mapping_file):
        reader = reader.long().computed().kept()
        if not len(reader.source):
            raise UserError(f"rows and only keep none of the {len(source)} rows of {path}")
    frame = reader.table()
    with located(path):
        check(frame, reader.source, reader.with_unit(), mapping)
        if mapping.public:
            check_published(frame, mapping.public, mapping_file)
    return Imported(frame.reset_index(drop=True), columns_of(mapping), about, mapping.study)


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


@dataclass(frozen=True)
class _Reader:
    """A foreign table as a mapping reads it; the index is a row's number in the file."""

    mapping: Mapping
    file: Path
    source: pd.DataFrame
    units: dict[str, str]

    def long(self) -> Self:
        """Returns the reader of a row for each cell of the columns that ``long`` names."""
        if (long := self.mapping.long) is None:
            return self
        tables = []
        for column, value in long.columns.items():
            self._require(column)
            others = self.source.drop(columns=[*long.columns], errors="ignore")
            if twice := {long.name, long.value} & set(others):
                raise UserError(f"long: the table has a column {min(twice)!r} already")
            filled = others.assign(**{long.name: value, long.value: self.source[column]})
            tables.append(filled.set_axis([f"{row} ({column})" for row in filled.index]))
        whole = pd.concat(tables)
        return replace(self, source=whole[whole[long.value].notna()])

    def computed(self) -> Self:
        """Returns the reader of a source with the columns that ``computed`` adds to it."""
        source = self.source.copy()
        for name, expression in self.mapping.computed.items():
            with located("", "computed", name):
                if name in source:
                    raise UserError("the table has a column of this name already")
                source[name] = evaluate(expression, numbers(source), len(source))
        return replace(self, source=source)

    def kept(self) -> Self:
        """Returns the reader of the rows that the mapping keeps, in the source's order."""
        mask = pd.Series(select(columns(self.source), self.mapping.rows), self.source.index)
        for column, words in self.mapping.only.items():
            self._require(column)
            mask &= self.source[column].map(_word).isin([_word(word) for word in words])
        reader = replace(self, source=self.source[mask])
        if self.mapping.last:
            reader = replace(reader, source=reader._last())
        if self.mapping.duplicates in ("refuse", "all"):
            return reader
        same = reader._runs() if "run_id" in self.mapping.columns else as_lines(reader.source)
        if self.mapping.duplicates == "best":
            same = same[reader.table()[self.mapping.loss].sort_values(kind="stable").index]
        again = same.duplicated("last" if self.mapping.duplicates == "last" else "first")
        return replace(reader, source=reader.source[~again[reader.source.index]])

    def _runs(self) -> pd.Series:
        return self._column("run_id", self.mapping.columns["run_id"], "string")

    def _last(self) -> pd.DataFrame:
        """Returns the rows of each run with the highest value in the mapping's column ``last``.

        Rows without a loss do not count, unless the run has none at all.
        """
        name = self.mapping.last
        if "run_id" not in self.mapping.columns:
            raise UserError(f"last is {name}, but columns.run_id does not say which run a row is")
        with located("last"):
            self._require(name)
            steps = self._as_numbers(self.source[name], name)
            refuse_first(steps.isna(), lambda row: f"column {name} is empty; it must be a number")
        self._order()  # refuses expressions that name each other
        loss = self.mapping.loss
        behind = self._behind(loss) if loss in self.mapping.columns else set()
        has_loss = self.source[[c for c in self.source if c in behind]].notna().all(axis=1)
        runs = self._runs()
        counts = has_loss | ~has_loss.groupby(runs).transform("any")
        return self.source[counts & (steps == steps.where(counts).groupby(runs).transform("max"))]

    def _behind(self, name: str) -> set[str]:
        """Returns the source's columns that our column ``name`` is made of."""
        entry, ours = self.mapping.entries[name], self.mapping.entries.keys() - {name}
        if not entry.expression:
            return {entry.column}
        return {c for n in names(entry.expression) for c in (self._behind(n) if n in ours else {n})}

    def table(self) -> pd.DataFrame:
        """Returns a study's table of the source's rows."""
        frame = pd.DataFrame(index=self.source.index)
        columns = {column.name: column for column in columns_of(self.mapping)}
        for name in self._order():
            with self._located(name):
                frame[name] = self._filled(columns[name], self.mapping.entries[name], frame)
            if name == self.mapping.loss:  # now, for expressions may name it
                self._leave_out_losses(frame)
        self._leave_out_losses(frame)
        frame["study"], frame["source"] = self.mapping.study, "imported"
        if "run_id" not in frame:
            frame["run_id"] = [f"row-{row}" for row in frame.index]
        elif self.mapping.duplicates == "all":
            again = frame.groupby("run_id").cumcount()
            frame["run_id"] += [f"#{n + 1}" if n else "" for n in again]
        types = {name: _TYPES[column.type] for name, column in columns.items()}
        return frame.reindex(columns=[*columns]).astype(types)

    def _order(self) -> list[str]:
        """Returns the entries' names, each behind those that its expression names."""
        entries, graph = self.mapping.entries, dict[str, set[str]]()
        for name, entry in entries.items():
            with self._located(name):
                named = set(names(entry.expression)) if entry.expression else set()
            # In its own expression a column's name stands for the source's column.
            graph[name] = named & set(entries) - {name}
        if self.mapping.loss in graph:
            graph[self.mapping.loss].add("status")
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            circle = " -> ".join(error.args[1])
            raise UserError(f"{self.file}: these expressions name each other: {circle}") from None

    def _leave_out_losses(self, frame: pd.DataFrame) -> None:
        """Leaves losses to completed runs alone, as in the tables of runs trained here."""
        if self.mapping.without_loss and (loss := self.mapping.loss) in frame:
            lost = (frame["status"] == "completed") & ~np.isfinite(frame[loss])
            frame.loc[lost, "status"] = self.mapping.without_loss
        losses = [name for name in LOSSES if name in frame]
        frame[losses] = frame[losses].where(frame["status"] == "completed")

    def _located(self, name: str) -> AbstractContextManager[None]:
        return located(self.file, "more" if name in self.mapping.more else "columns", name)

    def with_unit(self) -> set[str]:
        """Returns the columns of a study's table whose unit the mapping or the source states."""
        own = {column.name: column.unit for column in columns_of(self.mapping)}
        entries = self.mapping.columns.items()
        return {n for n, e in entries if e.unit or self.units.get(e.column) == own[n]}

    def _filled(self, column: Column, entry: Values | Further, frame: pd.DataFrame) -> pd.Series:
        unit = entry.unit if isinstance(entry, Values) else ""
        if column.type == "string" and (entry.expression or unit):
            raise UserError("this column holds text; expression and unit go with numbers alone")
        if column.type != "string" and entry.columns:
            raise UserError("this column holds numbers; columns are joined to a text alone")
        if entry.expression:
            values = self._computed(entry.expression, frame, column.name)
        else:
            values = self._column(column.name, entry, column.type)
        if isinstance(entry, Values) and column.type != "string":
            variable = Variable(column.name, column.unit, "")
            declared = self.units.get(entry.column)
            refuse_unit(variable, entry.column, declared, unit or None, "unit: {word}")
            values = values * factor(variable, unit or column.unit)
        return _whole(values) if column.type == "int" else values

    def _column(self, name: str, entry: Values | Further, kind: str) -> pd.Series:
        """Returns the values of an entry without an expression, as texts or as floats."""
        if entry.value is not None:
            values = pd.Series([entry.value] * len(self.source), self.source.index, dtype=object)
        elif entry.columns:
            first, *others = (self._column(name, Values(column=c), kind) for c in entry.columns)
            return first.str.cat(others, sep="-")  # type: ignore[arg-type]
        else:
            self._require(entry.column)
            values = self.source[entry.column]
            if entry.pattern:
                values = _matched(values, entry)
            if entry.values:
                values = self._translated(values, entry)
        if kind == "string":
            words = values.map(_word).astype(object)
            refuse_first(
                words.isin([None, np.nan, ""]) & (name == "run_id"),
                lambda row: f"column {entry.column} is empty; it must say which run the row is of",
            )
            return words
        return self._as_numbers(values, entry.column or name)

    def _translated(self, cells: pd.Series, entry: Values | Further) -> pd.Series:
        known = {_word(theirs): ours for theirs, ours in entry.values.items()}
        words = cells.map(_word)
        refuse_first(
            ~words.isin(list(known)) & cells.notna(),
            lambda row: (
                f"column {entry.column} is {words[row]!r}, which values does not translate; it has "
                f"{', '.join(map(str, known))}. only or rows can leave such rows out."
            ),
        )
        return words.map(known)

    def _computed(self, expression: str, frame: pd.DataFrame, name: str) -> pd.Series:
        # If both tables have a column of one name, ours is taken: its unit is known.
        theirs = self.source.drop(columns=frame.columns, errors="ignore")
        given = numbers(theirs) | numbers(frame)
        values = pd.Series(evaluate(expression, given, len(frame)), frame.index)
        # A run that diverged may have an infinite loss; one that completed is refused later.
        wrong = values.isna() | (np.isinf(values) & (name not in LOSSES))
        for other in names(expression):
            wrong &= ~np.isnan(given[other])
        refuse_first(
            wrong, lambda row: f"{expression} is {values[row]}; it must be a finite number"
        )
        return values

    def _as_numbers(self, cells: pd.Series, name: str) -> pd.Series:
        values = pd.Series(as_numbers(cells), cells.index)
        refuse_first(
            values.isna() & cells.notna(),
            lambda row: f"column {name} is {cells.astype(object)[row]!r}; it must be a number",
        )
        return values

    def _require(self, column: str) -> None:
        if column not in self.source:
            known = or_nearest(column, map(str, self.source.columns), "the table has")
            raise UserError(f"the table has no column {column!r}{known}")


def _word(cell: Any) -> str | None:
    """Returns a cell's text, without a point for whole numbers; None for a missing cell."""
    if isinstance(cell, float | np.floating):
        return None if np.isnan(cell) else str(int(cell)) if cell.is_integer() else str(cell)
    return None if cell is None or cell is pd.NA else str(cell)


def _matched(cells: pd.Series, entry: Values | Further) -> pd.Series:
    """Returns what the entry's pattern takes of each text; a missing cell stays missing."""
    texts = cells.map(_word)
    taken = texts.astype("string").str.extract(entry.pattern, expand=False).astype(object)
    refuse_first(
        taken.isna() & cells.notna(),
        lambda row: f"column {entry.column} is {quoted(texts[row])}, which pattern does not match",
    )
    return taken


def _whole(values: pd.Series) -> pd.Series:
    whole = values.round()  # 1.001 M is 1000999.9999999999, and 64 bits hold no more than 9.2e18
    is_whole = np.isclose(values, whole, rtol=1e-9, atol=0) & (values.abs() < 9e18)
    refuse_first(
        values.notna() & ~is_whole,
        lambda row: (
            f"the value is {values[row]:.17g}; it must be a whole number below 9e18. An expression "
            "such as round(COLUMN) rounds it."
        ),
    )
    return whole
