"""Fitted laws on grids of their variables, between whose points the page interpolates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from moelaws.explore.encode import floats, shortened
from moelaws.explore.fits import LossFit
from moelaws.explore.material import Material
from moelaws.explore.studies import source_of
from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import FitPart
from moelaws.laws.base import AT_LEAST_1, FRACTION, SPARSITY, Array, Variable

BEYOND = 2.0  # a grid ends at this factor below and above the values that were measured
POINTS = {1: 61, 2: 61, 3: 15, 4: 7}  # of each variable, by their number: at most 3,721 in all
MOST = max(POINTS)  # variables that have a grid; the others are held


@dataclass(frozen=True)
class Axis:
    """A variable's grid: ``points`` (K,), even in the logarithm of the variable or of 1 - S."""

    variable: Variable
    points: Array
    fitted: tuple[float, float]
    log: bool


def fitted_laws(material: Material, fits: Iterable[LossFit]) -> list[dict[str, Any]]:
    """Returns the laws of all fits of losses that are not split, as the page reads them."""
    whole = [fit for fit in fits if not fit.spec.split_by]
    made = [material.attempt(partial(_law, material, fit)) for fit in whole]
    return [law for law in made if law is not None]


def axis(variable: Variable, fitted: tuple[float, float], points: int) -> Axis:
    """Returns the grid of a variable over what was ``fitted`` and somewhat beyond."""
    low, high = fitted
    if variable.domain is SPARSITY:
        denser, sparser = min(1.0, BEYOND * (1 - low)), (1 - high) / BEYOND
        return Axis(variable, 1 - np.geomspace(denser, sparser, points), fitted, log=False)
    if low <= 0:
        span = (high - low) / 2
        return Axis(variable, np.linspace(low, high + span, points), fitted, log=False)
    least = 1.0 if variable.domain is AT_LEAST_1 else 0.0
    most = 1.0 if variable.domain is FRACTION else np.inf
    ends = max(least, low / BEYOND), min(most, high * BEYOND)
    return Axis(variable, np.geomspace(*ends, points), fitted, log=True)


def _law(material: Material, fit: LossFit) -> dict[str, Any] | None:
    """Returns one law; None where all variables have one value, so that nothing can be varied."""
    part, law = fit.report.parts[0], fit.law
    used = fit.used(part)
    values = {v.name: fit.values[v.name][used] for v in fit.variables}
    varied = [v for v in fit.variables if np.ptp(values[v.name]) > 0][:MOST]
    if not varied:
        return None
    axes = [
        axis(v, (float(values[v.name].min()), float(values[v.name].max())), POINTS[len(varied)])
        for v in varied
    ]
    names = {v.name for v in varied}
    held = {name: float(np.median(x)) for name, x in values.items() if name not in names}
    mean, low, high = _predicted(fit, part, axes, held)
    return {
        "id": f"{fit.study.study}/{fit.spec.name}",
        "law": law.ref,
        "title": f"{law.title} ({fit.study.study}, fit {fit.spec.name})",
        "equation": law.equation,
        "study": fit.study.study,
        "source": source_of(material, fit.study),
        "response": {
            "name": law.response.name,
            "unit": law.response.unit,
            "log": law.log_response,
        },
        "level": fit.report.level,
        "variables": [_variable(fit, each) for each in axes],
        "held": held,
        "mean": floats(mean),
        "low": floats(low),
        "high": floats(high),
        "params": [
            {"name": name, "estimate": p.estimate, "low": p.low, "high": p.high}
            for name, p in part.params.items()
        ],
        "metrics": part.metrics,
        "holdout": part.holdout,
        "warnings": [*part.warnings, *_of_held(held, values)],
        "points": {
            "run": [row for row, chosen in zip(fit.row, used, strict=True) if chosen],
            "values": {name: shortened(x) for name, x in values.items()},
            "L": shortened(fit.values[law.response.name][used]),
        },
    }


def _predicted(
    fit: LossFit, part: FitPart, axes: list[Axis], held: dict[str, float]
) -> tuple[Array, Array, Array]:
    """Returns the response and the ends of its mean's interval on the whole grid, (points,)."""
    grids = np.meshgrid(*(each.points for each in axes), indexing="ij")
    columns = {each.variable.name: grid.ravel() for each, grid in zip(axes, grids, strict=True)}
    columns |= {name: np.full(grids[0].size, value) for name, value in held.items()}
    with np.errstate(all="ignore"):  # a draw may overflow far from its rows
        found = predict(
            fit.law,
            part.estimates(),
            fit.draws(part),
            Residuals(),  # no interval of a new observation is shown
            columns,
            fit.report.level,
        )
    return found.value, found.low, found.high


def _variable(fit: LossFit, each: Axis) -> dict[str, Any]:
    v = each.variable
    column = fit.sources.get(v.name, v.name)
    read = "" if column == v.name else f" (the column {column} of the runs)"
    return {
        "name": v.name,
        "unit": v.unit,
        "description": v.description + read,
        "grid": shortened(each.points),
        "fitted": list(each.fitted),
        "log": each.log,
    }


def _of_held(held: dict[str, float], values: dict[str, Array]) -> list[str]:
    """Returns a sentence on each variable that has no slider though it was varied."""
    return [
        f"{name} has no slider: the law is shown at its median, {value:.4g}."
        for name, value in held.items()
        if np.ptp(values[name]) > 0
    ]
