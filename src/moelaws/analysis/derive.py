"""Making one derived table of a study, and writing it as Parquet with its columns' units."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from moelaws.analysis.inputs import EXACT_FITS, Inputs
from moelaws.spec.errors import UserError
from moelaws.spec.readers import Derived
from moelaws.spec.references import resolve
from moelaws.spec.study import Study
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import TRAINED_COLUMNS

Row = dict[str, Any]  # of a derived table
Rows = pd.DataFrame | Iterable[Mapping[str, Any]]

Warnings = Callable[[pd.DataFrame], list[str]]
Lines = Mapping[str, str]  # condition of a row (``pandas.eval``) -> its warning

SOURCE = Column("source", "string", "1", "where the losses behind it come from")


class DerivedTable:
    """A study's function that makes a derived table, and the columns that it declares."""

    def __init__(
        self, function: Callable[..., Rows], columns: tuple[Column, ...], empty: str, told: Lines
    ) -> None:
        functools.update_wrapper(self, function)
        self.columns, self._function = columns, function
        self._empty, self._told = empty, told
        self._limits: Warnings = lambda frame: []

    def __call__(self, inputs: Inputs, **arguments: Any) -> pd.DataFrame:
        """Returns the table, its columns in the order of the declaration."""
        rows = self._function(inputs, **arguments)
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        return frame.reindex(columns=self.names)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def limits(self, function: Warnings) -> Warnings:
        """Decorates the function that returns what limits the trust in a table, a line each."""
        self._limits = function
        return function

    def warnings(self, frame: pd.DataFrame) -> list[str]:
        """Returns what limits the trust in a table, a line each."""
        if self._empty and frame.empty:
            return [self._empty]
        told = [
            line.format(**row)
            for condition, line in self._told.items()
            for row in records(frame.query(condition, engine="python"))
        ]
        return [*dict.fromkeys(told), *self._limits(frame)]


def of_runs(*names: str) -> tuple[Column, ...]:
    """Returns columns of the study's table, as that declares them, for a derived table."""
    known = {column.name: column for column in TRAINED_COLUMNS}
    return tuple(known[name] for name in names)


def records(frame: pd.DataFrame) -> list[Row]:
    """Returns the rows of ``frame`` as mappings, to which a derived table adds columns."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def of_kept(
    runs: pd.DataFrame, read: Callable[[str], pd.DataFrame]
) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yields each of the ``runs`` whose weights are kept, with what ``read`` returns of it."""
    for run in records(runs):
        with suppress(UserError):  # of a run without weights
            yield run, read(run["run_id"])


def table(
    *columns: Column, empty: str = "", told: Lines | None = None
) -> Callable[[Callable[..., Rows]], DerivedTable]:
    """Decorates a function that makes a derived table with these ``columns`` of its inputs.

    ``empty`` is the warning of a table without rows, and ``told`` has those of rows by their
    condition. These name the row's cells; one that several rows have comes once.
    """
    return lambda function: DerivedTable(function, columns, empty, told or {})


def derive(study: Study, name: str, inputs: Inputs, out: Path) -> list[str]:
    """Writes the study's derived table ``name`` to ``out`` (.parquet); returns its warnings.

    A UserError refuses an unknown table or code, and an input that is missing or not declared.
    """
    entry = study.derived_table(name)
    function = derived_table(study, entry)
    declared = inputs.declared_by(entry)
    frame = function(declared, **entry.arguments)
    frame = frame.assign(source="+".join(declared.sources))
    exact = {EXACT_FITS: " ".join(sorted(declared.exact_fits))}
    write_table(frame, (*function.columns, SOURCE), out, exact, declared.made_of())
    return function.warnings(frame)


def derived_table(study: Study, entry: Derived) -> DerivedTable:
    """Returns the function that makes the derived table ``entry`` and declares its columns."""
    function = resolve(study.home, entry.code)
    if not isinstance(function, DerivedTable):
        raise UserError(
            f"derived table {entry.name!r}: {entry.code} declares no columns; decorate it with "
            "@table(...) of moelaws.analysis.derive"
        )
    return function
