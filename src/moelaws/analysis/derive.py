"""Making one derived table of a study, and writing it as Parquet with its columns' units."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import EXACT_FITS, Inputs
from moelaws.spec.errors import UserError
from moelaws.spec.readers import Derived
from moelaws.spec.references import resolve
from moelaws.spec.study import Study
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import TRAINED_COLUMNS

Row = dict[str, Any]  # of a derived table
Rows = Iterable[Any]  # a data frame, or a mapping for each row; a figure may take parts of a frame

SOURCE = Column("source", "string", "where the losses behind it come from")


@dataclass(frozen=True)
class DerivedTable:
    """A study's function that makes a derived table, and the columns that it declares."""

    function: Callable[..., Rows]
    columns: tuple[Column, ...]
    told: Mapping[str, str]  # condition of a row -> its warning

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def __call__(self, inputs: Inputs, **arguments: Any) -> pd.DataFrame:
        """Returns the table, its columns in the order of the declaration."""
        return self.frame(self.function(inputs, **arguments))

    def frame(self, rows: Rows) -> pd.DataFrame:
        """Returns the table of ``rows``."""
        if not isinstance(rows, pd.DataFrame):
            rows = pd.DataFrame([self._with_ends(row) for row in rows])
        return rows.reindex(columns=self.names)

    def _with_ends(self, row: Mapping[str, Any]) -> Row:
        """Returns the cells of a row; the columns of an effect's ends follow that of its value."""
        cells = dict(row)
        for name, effect in row.items():
            if isinstance(effect, Effect):
                place = self.names.index(name)
                cells |= zip(self.names[place : place + 3], effect.interval, strict=True)
        return cells

    def warnings(self, frame: pd.DataFrame) -> list[str]:
        """Returns what limits the trust in a table, each line once."""
        told = (
            line.format(**row)
            for condition, line in self.told.items()
            for row in records(frame.query(condition, engine="python"))
        )
        return [*dict.fromkeys(told)]


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
    *columns: Column, told: Mapping[str, str] = {}
) -> Callable[[Callable[..., Rows]], DerivedTable]:
    """Decorates a function that makes a derived table with these ``columns`` of its inputs.

    A row may hold a number as an ``Effect``, for columns that are ``estimated``. ``told`` has the
    warning of rows by their condition (``pandas.DataFrame.query``), with their cells in braces.
    """
    return lambda function: DerivedTable(function, columns, told)


def derive(study: Study, name: str, inputs: Inputs, out: Path) -> list[str]:
    """Writes the study's derived table ``name`` to ``out`` (.parquet); returns its warnings.

    A UserError refuses an unknown table or code, and an input that is missing or not declared.
    """
    entry = study.derived_table(name)
    function = derived_table(study, entry)
    declared = inputs.declared_by(entry)
    frame = function(declared, **entry.arguments).assign(source="+".join(declared.sources))
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
