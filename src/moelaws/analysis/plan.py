"""The fits that a study would make of simulated losses, and which coefficients they recover."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.remake import remake, with_starts
from moelaws.files.layout import TierFolder
from moelaws.fitting.report import FitReport, GroupFit
from moelaws.fitting.rollout import Progress
from moelaws.fitting.rows import read_rows, split_rows
from moelaws.fitting.variables import with_size
from moelaws.spec.base import parse
from moelaws.spec.fit import Fit
from moelaws.spec.study import Simulation, Study
from moelaws.tables.at_hand import fitted_table
from moelaws.tables.simulate import DEFAULT_MAPPING

DRAWS = 100  # of an interval


@dataclass(frozen=True)
class Coefficient:
    """One parameter of a fit to simulated losses, beside what it should be."""

    reference: float | None  # what it should be, natural scale; None if unknown
    # Whether the losses were simulated with the reference. Else the paper publishes it for another
    # of its laws, which follows only approximately from the simulated one.
    simulated: bool
    estimate: float
    low: float | None
    high: float | None
    relative_width: float | None  # of the interval, over the estimate; None without an interval
    identified: bool  # whether the fit's rows determine it, as the fit reports
    holds: bool | None  # whether the interval holds the reference; None where either is missing

    @property
    def is_of_another_law(self) -> bool:
        return self.reference is not None and not self.simulated


Part = tuple[GroupFit, dict[str, Coefficient]]  # a group of a fit, with its coefficients by name


class Planned(NamedTuple):
    """A fit of the study: its report and coefficients, or the reason why there is none."""

    entry: Fit
    report: FitReport | None
    parts: Sequence[Part]
    reason: str


def fits_of(study: Study, simulation: Simulation, sample: int | None = None) -> Study:
    """Returns the study with the fits that simulated losses allow, the simulated law's among them.

    With ``sample`` a fit runs at most that many starts, and no more than ``DRAWS`` refits: a plan
    needs widths to a sixth, not ends to three digits.
    """
    possible = study.of_simulated()
    fits = list(possible.fits)
    if (law := simulation.law) not in {entry.law for entry in fits}:
        fits.append(
            Fit(name=re.sub(r"\W", "_", law), law=law, mapping=DEFAULT_MAPPING | simulation.mapping)
        )
    if sample is not None:
        fits = [with_starts(entry, sample, DRAWS) for entry in fits]
    return possible.model_copy(update={"fits": tuple(fits)})


def plan(
    study: Study,
    folder: TierFolder,
    about: Mapping[str, Any],
    progress: Callable[[str], Progress],
    every: bool = True,
) -> Iterator[Planned]:
    """Makes the fits of a study of ``fits_of`` and the derived tables that they read.

    Yields each fit when it is made, after those that it needs. Unless ``every`` fit is asked for,
    it yields those of the simulated law alone whose rows follow it. A fit without intervals is no
    part of a plan, which tells their widths. ``about`` says how the study's table was simulated, as
    the table's file records it. ``progress`` returns, for a fit's name, what to call with the fit's
    progress.
    """
    chosen = {
        f.name for f in study.fits if f.intervals != "none" and (every or f.law == about["law"])
    }

    def has_no_truth(entry: Fit, table: pd.DataFrame, units: Mapping[str, str]) -> bool:
        return not every and entry.name in chosen and not _reference(entry, about, table, units)[0]

    for entry, report, reason in remake(study, folder, chosen, progress, has_no_truth):
        if isinstance(entry, Fit) and entry.name in chosen:
            parts = []
            if report:
                parts = coefficients(report, about, *read_rows(fitted_table(study, entry, folder)))
            yield Planned(entry, report, parts, reason)


def coefficients(
    report: FitReport, about: Mapping[str, Any], table: pd.DataFrame, units: Mapping[str, str]
) -> list[Part]:
    """Compares each parameter of each group of ``report`` with what it should be.

    ``about`` says how the losses were simulated: ``law``, ``params``, ``noise`` and ``study``.
    ``table`` is what was fitted, and ``units`` are those that it declares.
    """
    entry = parse(Fit, report.spec | {"law": report.law}, report.name)
    reference, simulated = _reference(entry, about, table, units)
    compared = []
    for fitted in report.parts:
        each = {}
        unknown = {*fitted.diagnostics.unidentified, *fitted.diagnostics.at_bounds}
        for name, own in fitted.params.items():
            known = fitted.converged and name not in unknown and math.isfinite(own.estimate)
            true, width, holds = reference.get(name), None, None
            if own.low is not None and own.high is not None:
                width = (own.high - own.low) / abs(own.estimate) if own.estimate else None
                holds = None if true is None else own.low <= true <= own.high
            numbers = (own.estimate, own.low, own.high, width)
            as_simulated = simulated and name in reference
            each[name] = Coefficient(true, as_simulated, *numbers, known, holds)
        compared.append((fitted, each))
    return compared


def _reference(
    entry: Fit, about: Mapping[str, Any], table: pd.DataFrame, units: Mapping[str, str]
) -> tuple[Mapping[str, float], bool]:
    """Returns what the parameters should be, and whether the losses were simulated with it.

    They should be those of the simulated law if the rows, as this fit reads them, follow it up to
    its noise. Rows do not follow it if the fit takes other columns for the law's variables.
    """
    law, simulated = laws.fittable(entry.law), laws.fittable(about["law"])
    if law.id != simulated.id:
        of_the_paper = law.source.partition(",")[0] == about["study"]
        same = of_the_paper and simulated.published == about["params"]
        return (law.published or {}, False) if same else ({}, False)
    if entry.law == about["law"]:
        residuals = [
            law.on_scale(rows.response) - law.on_scale(law.predict(about["params"], rows.columns))
            for rows in split_rows(law, table, with_size(law, table, entry), units)
        ]
        rms = np.sqrt(np.mean(np.concatenate(residuals) ** 2))
        if rms < 2 * about["noise"] + 1e-9:
            return about["params"], True
    return {}, False
