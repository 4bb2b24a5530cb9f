"""What a study's fits would find: all of them made of one table, with what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter

import pandas as pd

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.fit import Progress, fit
from moelaws.fitting.report import FitReport, estimates_table, read_fit, write_fit
from moelaws.records.layout import Results
from moelaws.spec.errors import UserError, located
from moelaws.spec.study import Fit, Simulation, Study
from moelaws.tables.foreign import read_any
from moelaws.tables.simulate import DEFAULT_MAPPING


@dataclass(frozen=True)
class Planned:
    """A fit of the study: its report, or why these rows do not allow it."""

    name: str
    law: str
    report: FitReport | None
    reason: str = ""


def fits_of(study: Study, asked: Simulation, sample: int | None = None) -> Study:
    """The study with the fits that simulated losses allow, as a plan wants them.

    Args:
        study: whose figures, tables and claims are left out.
        asked: what is simulated; its law is fitted in any case.
        sample: starts of each fit, a sample of its law's grid where that has more; else as the
            study or the law says.
    """
    possible = study.of_simulated()
    fits = list(possible.fits)
    if asked.law not in {entry.law for entry in fits}:
        name = "".join(c if c.isalnum() else "_" for c in asked.law)
        fits.append(Fit(name=name, law=asked.law, mapping={**DEFAULT_MAPPING, **asked.mapping}))
    if sample is not None:
        fits = [_sampled(entry, sample) for entry in fits]
    nothing = {"figures": (), "tables": (), "claims": ()}
    return possible.model_copy(update={"fits": tuple(fits), **nothing})


def plan(
    study: Study, tier: str, results: Results, progress: Callable[[str], Progress]
) -> Iterator[Planned]:
    """Make the study's fits of its simulated table, and the derived tables that they read.

    Args:
        study: of ``fits_of``.
        tier: of the table.
        results: where that table lies, and where what is made of it goes.
        progress: of a fit's name, what is called as the fit goes on.

    Yields each fit as it is made, after those that it needs.
    """
    lost: dict[str, str] = {}  # fits and derived tables -> why
    for name in _order(study):
        missing = sorted(_needs(study)[name] & lost.keys())
        entry = next((f for f in study.fits if f.name == name), None)
        try:
            if missing:
                raise UserError(f"it needs {missing[0]}: {lost[missing[0]]}")
            if entry is None:
                _derive(study, tier, name, results)
            else:
                yield Planned(name, entry.law, _fit(study, tier, entry, results, progress(name)))
        except UserError as error:
            lost[name] = str(error)
            if entry is not None:
                yield Planned(name, entry.law, None, str(error))


def _sampled(entry: Fit, sample: int) -> Fit:
    law = laws.fittable(entry.law)
    if "sample" in entry.protocol or law.protocol.n_starts <= sample:
        return entry
    return entry.model_copy(update={"protocol": {**entry.protocol, "sample": sample}})


def _needs(study: Study) -> dict[str, set[str]]:
    """Fit or derived table -> the fits and derived tables that it reads."""
    needs: dict[str, set[str]] = {f.name: {f.table} - {""} for f in study.fits}
    return needs | {d.name: {*d.fits, *d.derived} for d in study.derived}


def _order(study: Study) -> list[str]:
    """The fits and what they read, each after what it reads itself."""
    needs = _needs(study)
    wanted = {fit.name for fit in study.fits}
    while more := {n for name in wanted for n in needs[name]} - wanted:
        wanted |= more
    order = TopologicalSorter({name: needs[name] for name in needs if name in wanted})
    return list(order.static_order())


def _derive(study: Study, tier: str, name: str, results: Results) -> None:
    entry = next(d for d in study.derived if d.name == name)
    inputs = Inputs.read(
        results.table(tier, study.study, simulated=True),
        {n: results.fit(tier, study.study, n, simulated=True) for n in entry.fits},
        {n: results.derived(tier, study.study, n, simulated=True) for n in entry.derived},
    )
    derive(study, name, inputs, results.derived(tier, study.study, name, simulated=True))


def fitted_table(
    study: Study, tier: str, entry: Fit, results: Results
) -> tuple[pd.DataFrame, dict[str, str]]:
    """What the fit ``entry`` is fitted to below ``results``, and the units that it declares.

    Raises:
        UserError: where it is missing or cannot be read.
    """
    where = (tier, study.study)
    if not entry.table:
        return read_any(results.table(*where, simulated=True))
    if entry.table in {f.name for f in study.fits}:
        return estimates_table(read_fit(results.fit(*where, entry.table, simulated=True))), {}
    return read_any(results.derived(*where, entry.table, simulated=True))


def _fit(study: Study, tier: str, entry: Fit, results: Results, progress: Progress) -> FitReport:
    frame, units = fitted_table(study, tier, entry, results)
    with located(f"the table of {entry.name}"):
        report = fit(laws.fittable(entry.law), frame, entry, units=units, progress=progress)
    write_fit(report, results.fit(tier, study.study, entry.name, simulated=True))
    return report
