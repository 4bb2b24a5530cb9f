"""What a derived table, a figure or a claim may read: its study's table and what it declares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.fitting.report import FitReport, read_draws, read_fit
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.rows import select
from moelaws.spec.study import Fit
from moelaws.tables.parquet import is_study, read_study, read_table
from moelaws.tables.sweeps import in_sweep


@dataclass(frozen=True)
class Inputs:
    """The files behind one derived table, figure or claim, by the names the study gives them.

    ``fits`` and ``derived_tables`` map names to paths and hold what the study's entry declares,
    nothing more: asking for another name raises, so that the workflow knows every file that is
    read. A study that only computes has no ``table``. The records of its runs lie in ``results``.
    """

    frame: pd.DataFrame | None = field(repr=False)
    fits: Mapping[str, Path] = field(default_factory=dict)
    derived_tables: Mapping[str, Path] = field(default_factory=dict)
    results: Results = field(default_factory=Results)

    @classmethod
    def read(
        cls, table: Path | None, fits: Mapping[str, Path] = {}, derived: Mapping[str, Path] = {}
    ) -> Inputs:
        """The inputs whose table lies at ``table``; None for a study without runs.

        Raises:
            UserError: where the table is missing, unreadable or has no completed run.
        """
        if table is None:
            return cls(None, dict(fits), dict(derived))
        frame = read_study(table) if is_study(table) else read_table(table)
        if not len(completed(frame)):
            raise UserError(f"{table}: no completed run among its {len(frame)} rows")
        return cls(frame, dict(fits), dict(derived))

    def only(self, fits: Collection[str], derived: Collection[str] = ()) -> Inputs:
        """The same table with no other fits and derived tables than those named."""
        return replace(
            self,
            fits={name: path for name, path in self.fits.items() if name in fits},
            derived_tables={n: path for n, path in self.derived_tables.items() if n in derived},
        )

    @property
    def table(self) -> pd.DataFrame:
        """The study's table, a row a run.

        Raises:
            UserError: for a study without runs.
        """
        if self.frame is None:
            raise UserError("this study has no runs: it has no table to read")
        return self.frame

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The rows that have a loss, in the table's order."""
        return completed(self.table)

    def sweep(self, name: str) -> pd.DataFrame:
        """The completed rows that the study's sweep ``name`` asked for."""
        return self.completed[in_sweep(self.completed, name)].reset_index(drop=True)

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
        """The rows that the fit ``name`` asks for, held-out ones among them.

        Of a fit to a derived table, that table's; it must be declared too.
        """
        spec = self.spec(name)
        if spec.table:
            frame = self.derived(spec.table)
        else:
            frame = self.sweep(spec.sweep) if spec.sweep else self.completed
        return frame[row_mask(frame, spec.rows)]

    def derived(self, name: str) -> pd.DataFrame:
        """The derived table ``name``."""
        return read_table(_declared("derived table", name, self.derived_tables))

    def history(self, run_id: str) -> pd.DataFrame:
        """The logged steps of a trained run, columns as in ``training.columns``.

        Raises:
            UserError: where the run left no history, as a simulated one.
        """
        return read_table(self.results.run(run_id) / "history.parquet")

    def hidden(self, run_id: str) -> pd.DataFrame:
        """The hidden states of a run whose weights are kept (``moelaws probe``).

        Raises:
            UserError: where the run was not probed.
        """
        return read_table(self.results.hidden(run_id))

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the losses come from: those seen of trained, simulated and imported."""
        reports = (str(read_fit(path).source) for path in self.fits.values())
        own = [] if self.frame is None else list(self.frame["source"].astype(str).unique())
        named = "+".join([*own, *reports])
        return tuple(sorted(set(named.split("+")) - {""}))


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
