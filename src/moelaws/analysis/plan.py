"""What a study's fits of simulated losses would tell: each fit, with the tables that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import pandas as pd

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import read_runs
from moelaws.analysis.recovery import Recovered, recovered
from moelaws.fitting.estimate import Progress
from moelaws.fitting.fit import fit
from moelaws.fitting.report import FitReport, estimates_table, read_fit, write_fit
from moelaws.records.layout import TierFolder
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.spec.study import Simulation, Study
from moelaws.tables.foreign import read_any
from moelaws.tables.simulate import DEFAULT_MAPPING


@dataclass(frozen=True)
class Planned:
    """A fit of the study: its report and coefficients, or why these rows do not allow it."""

    name: str
    law: str
    report: FitReport | None
    coefficients: Sequence[Recovered] = ()
    reason: str = ""


def fits_of(study: Study, simulation: Simulation, sample: int | None = None) -> Study:
    """Returns the study with the fits that simulated losses allow, as a plan makes them.

    Args:
        study: whose figures, tables and claims are left out.
        simulation: says what is simulated; its law is fitted in any case.
        sample: starts of each fit, a sample of its law's grid where that has more; else as the
            study or the law says.
    """
    possible = study.of_simulated()
    fits = list(possible.fits)
    if (law := simulation.law) not in {entry.law for entry in fits}:
        name = "".join(c if c.isalnum() else "_" for c in law)
        fits.append(Fit(name=name, law=law, mapping=DEFAULT_MAPPING | simulation.mapping))
    if sample is not None:
        fits = [_sampled(entry, sample) for entry in fits]
    nothing = {"figures": (), "tables": (), "claims": ()}
    return possible.model_copy(update={"fits": tuple(fits), **nothing})


def plan(
    study: Study, folder: TierFolder, about: Mapping[str, Any], progress: Callable[[str], Progress]
) -> Iterator[Planned]:
    """Makes the study's fits of its simulated table, and the derived tables that they read.

    Args:
        study: of ``fits_of``.
        folder: where that table lies, and where fits and derived tables go.
        about: how the table was simulated, as its file says it.
        progress: of a fit's name, what is called as the fit goes on.

    Yields each fit once it is made, after those that it needs.
    """
    lost: dict[str, str] = {}  # fits and derived tables -> why
    needs = _needs(study)
    for name in _order(study, needs):
        missing = sorted(needs[name] & lost.keys())
        entry = next((f for f in study.fits if f.name == name), None)
        try:
            if missing:
                raise UserError(f"it needs {missing[0]}: {lost[missing[0]]}")
            if entry is None:
                _derive(study, name, folder)
            else:
                report, coefficients = _fit(study, entry, folder, about, progress(name))
                yield Planned(name, entry.law, report, coefficients)
        except UserError as error:
            lost[name] = str(error)
            if entry is not None:
                yield Planned(name, entry.law, None, reason=str(error))


def _sampled(entry: Fit, sample: int) -> Fit:
    law = laws.fittable(entry.law)
    if "sample" in entry.protocol or law.protocol.n_starts <= sample:
        return entry
    return entry.model_copy(update={"protocol": {**entry.protocol, "sample": sample}})


def _needs(study: Study) -> dict[str, set[str]]:
    """Returns fit or derived table -> the fits and derived tables that it reads."""
    needs: dict[str, set[str]] = {f.name: {f.table} - {""} for f in study.fits}
    return needs | {d.name: {*d.fits, *d.derived} for d in study.derived}


def _order(study: Study, needs: Mapping[str, set[str]]) -> list[str]:
    """Returns the fits and what they read, each after what it reads itself."""
    names = {fit.name for fit in study.fits}
    while more := {need for name in names for need in needs[name]} - names:
        names |= more
    return list(TopologicalSorter({n: needs[n] for n in needs if n in names}).static_order())


def _derive(study: Study, name: str, folder: TierFolder) -> None:
    entry, key = study.derived_table(name), study.study
    inputs = FittedInputs(
        frame=read_runs(folder.table(key)),
        fits={n: folder.fit(key, n) for n in entry.fits},
        derived_tables={n: folder.derived(key, n) for n in entry.derived},
    )
    derive(study, name, inputs, folder.derived(key, name))


def fitted_table(
    study: Study, entry: Fit, folder: TierFolder
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Returns the table that ``entry`` is fitted to in ``folder``, and its columns' units."""
    if not entry.table:
        return read_any(folder.table(study.study))
    if entry.table in {f.name for f in study.fits}:
        return estimates_table(read_fit(folder.fit(study.study, entry.table))), {}
    return read_any(folder.derived(study.study, entry.table))


def _fit(
    study: Study, entry: Fit, folder: TierFolder, about: Mapping[str, Any], progress: Progress
) -> tuple[FitReport, list[Recovered]]:
    frame, units = fitted_table(study, entry, folder)
    with located(f"the table of {entry.name}"):
        report = fit(laws.fittable(entry.law), frame, entry, units=units, progress=progress)
    write_fit(report, folder.fit(study.study, entry.name))
    return report, recovered(report, about, frame, units)
