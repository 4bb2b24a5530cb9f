"""What a derived table or a figure may read: its study's table and the entries it declares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.fitting.report import FitReport, read_draws, read_fit
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.rows import select
from moelaws.spec.study import Fit
from moelaws.tables.parquet import is_study, read_study, read_table


@dataclass(frozen=True)
class Inputs:
    """The files behind one derived table or figure, by the names that the study gives them.

    ``fits`` and ``derived`` map names to paths and hold what the study's entry declares, nothing
    more: asking for another name raises, so that the workflow knows every file that is read.
    """

    table: pd.DataFrame = field(repr=False)
    fits: Mapping[str, Path] = field(default_factory=dict)
    derived_tables: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def read(
        cls, table: Path, fits: Mapping[str, Path] = {}, derived: Mapping[str, Path] = {}
    ) -> Inputs:
        """The inputs whose table lies at ``table``.

        Raises:
            UserError: where the table is missing, unreadable or has no completed run.
        """
        frame = read_study(table) if is_study(table) else read_table(table)
        if not len(completed(frame)):
            raise UserError(f"{table}: no completed run among its {len(frame)} rows")
        return cls(frame, dict(fits), dict(derived))

    def only(self, fits: Collection[str], derived: Collection[str] = ()) -> Inputs:
        """The same table with no other fits and derived tables than those named."""
        return Inputs(
            self.table,
            {name: path for name, path in self.fits.items() if name in fits},
            {name: path for name, path in self.derived_tables.items() if name in derived},
        )

    @property
    def completed(self) -> pd.DataFrame:
        """The rows that have a loss, in the table's order."""
        return completed(self.table)

    def fit(self, name: str) -> FitReport:
        """The report of the fit ``name``."""
        return read_fit(_declared("fit", name, self.fits))

    def draws(self, name: str) -> pd.DataFrame:
        """The draws of the fit ``name``: a row a draw, a column a parameter."""
        return read_draws(_declared("fit", name, self.fits))

    def spec(self, name: str) -> Fit:
        """The fit ``name`` as it was asked for: its rows, mapping and hold-out."""
        return parse(Fit, self.fit(name).spec, _declared("fit", name, self.fits))

    def rows(self, name: str) -> pd.DataFrame:
        """The completed rows that the fit ``name`` asks for, held-out ones among them."""
        frame = self.completed
        return frame[row_mask(frame, self.spec(name).rows)]

    def derived(self, name: str) -> pd.DataFrame:
        """The derived table ``name``."""
        return read_table(_declared("derived table", name, self.derived_tables))

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the losses come from: those seen of trained, simulated and imported."""
        reports = (str(read_fit(path).source) for path in self.fits.values())
        named = "+".join([*self.table["source"].astype(str).unique(), *reports])
        return tuple(sorted(set(named.split("+"))))


def completed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a loss."""
    return frame[(frame["status"] == "completed") & frame["L"].notna()].reset_index(drop=True)


def row_mask(frame: pd.DataFrame, expression: str) -> NDArray[np.bool_]:
    """Which rows (n,) of ``frame`` hold ``expression``; all for an empty one."""
    mask = select({str(name): frame[name] for name in frame.columns}, expression)
    return np.array(np.broadcast_to(mask, len(frame)), bool)


def at(frame: pd.DataFrame, column: str, value: float) -> pd.DataFrame:
    """The rows whose ``column`` is ``value`` up to rounding of its text form."""
    return frame[np.isclose(frame[column].astype(float), value, rtol=1e-9, atol=0.0)]


def _declared(kind: str, name: str, known: Mapping[str, Path]) -> Path:
    if name not in known:
        raise UserError(
            f"the {kind} {name!r} is read but not among those declared in the study's entry and "
            f"given: {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]
