"""Which coefficients the fits of simulated losses find again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.report import FitPart, FitReport
from moelaws.fitting.rows import split_rows
from moelaws.spec.base import parse
from moelaws.spec.fit import Fit


@dataclass(frozen=True)
class Recovered:
    """One parameter of a fit to simulated losses.

    Attributes:
        where: the split column's value; empty for a fit that is not split.
        parameter: its name in the law.
        reference: what it should be, natural scale; None where nothing says so, as of another
            law than the one simulated.
        simulated: whether the losses were simulated with ``reference``; else it is the value that
            the paper publishes for a law of its own, which follows from the simulated one in part.
        estimate, low, high: the fit's.
        identified: whether the fit's rows determine it, by the fit's own judgement.
    """

    where: Mapping[str, float]
    parameter: str
    reference: float | None
    simulated: bool
    estimate: float
    low: float | None
    high: float | None
    identified: bool

    @property
    def relative_width(self) -> float | None:
        """The interval's width over the estimate; None without an interval."""
        if self.low is None or self.high is None or self.estimate == 0:
            return None
        return (self.high - self.low) / abs(self.estimate)

    @property
    def holds(self) -> bool | None:
        """Whether the interval holds the reference; None where one of them is missing."""
        if self.reference is None or self.low is None or self.high is None:
            return None
        return self.low <= self.reference <= self.high

    def as_dict(self) -> dict[str, Any]:
        """Returns its numbers, for JSON."""
        numbers = ("reference", "simulated", "estimate", "low", "high", "relative_width")
        return {name: getattr(self, name) for name in (*numbers, "identified", "holds")}


def recovered(
    report: FitReport, about: Mapping[str, Any], table: pd.DataFrame, units: Mapping[str, str]
) -> list[Recovered]:
    """Compares each parameter of each part of ``report`` with what it should be.

    Args:
        report: a fit to simulated losses, or to what was derived from them.
        about: how those were simulated, as the simulated table's file says: its ``law``,
            ``params``, ``noise`` and ``study``.
        table: what the report was fitted to, and the ``units`` that it declares.
    """
    reference, simulated = _reference(report, about, table, units)
    return [
        Recovered(
            where=part.where,
            parameter=name,
            reference=reference.get(name),
            simulated=simulated and name in reference,
            estimate=fitted.estimate,
            low=fitted.low,
            high=fitted.high,
            identified=_identified(part, name),
        )
        for part in report.parts
        for name, fitted in part.params.items()
    ]


def _identified(part: FitPart, name: str) -> bool:
    unknown = {*part.diagnostics.unidentified, *part.diagnostics.at_bounds}
    return part.converged and name not in unknown and math.isfinite(part.params[name].estimate)


def _reference(
    report: FitReport, about: Mapping[str, Any], table: pd.DataFrame, units: Mapping[str, str]
) -> tuple[Mapping[str, float], bool]:
    """Returns what the parameters should be, and whether the losses were simulated with it."""
    law = laws.fittable(report.law)
    if law.id == laws.fittable(about["law"]).id:
        same = report.law == about["law"] and _follows(report, about, table, units)
        return (about["params"], True) if same else ({}, False)
    of_the_paper = law.source.partition(",")[0] == about["study"]
    published = laws.fittable(about["law"]).published == about["params"]
    return (law.published or {}, False) if of_the_paper and published else ({}, False)


def _follows(
    report: FitReport, about: Mapping[str, Any], table: pd.DataFrame, units: Mapping[str, str]
) -> bool:
    """Whether the rows, as this fit reads them, follow the simulated law up to its noise.

    They do not where it takes other columns for the law's variables.
    """
    law, spec = laws.fittable(report.law), parse(Fit, report.spec, report.name)
    away = [
        law.on_scale(rows.response) - law.on_scale(law.predict(about["params"], rows.columns))
        for rows in split_rows(law, table, spec, units)
    ]
    return bool(np.sqrt(np.mean(np.concatenate(away) ** 2)) < 2 * about["noise"] + 1e-9)
