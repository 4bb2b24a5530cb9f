"""Fitted laws on grids of their variables, between whose points the page interpolates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from moelaws.explore.encode import floats, rounded, shortened
from moelaws.explore.fits import LossFit
from moelaws.explore.material import Material
from moelaws.explore.studies import source_of
from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import FitPart
from moelaws.laws.base import AT_LEAST_1, FRACTION, SPARSITY, Array, Variable

BEYOND = 1.5  # a grid ends at this factor below and above the values that were measured
MOST = 4  # variables that have a grid; the others are held
MOST_POINTS = 6000  # of a grid, over all of its variables
FEWEST, FINEST = 4, 61  # points of one variable
MANTISSA = 15  # bits of a loss: to 0.00006 nats
COARSE = 7  # points of each variable, to see where a law bends


@dataclass(frozen=True)
class Axis:
    """A variable's range, and the scale on which its grid is even.

    Attributes:
        variable: of the law.
        fitted: the least and the largest value of the rows that the law was fitted to.
        low, high: the ends of the grid.
        scale: ``log`` of the variable; ``sparse``, the logarithm of 1 - S; or ``linear``.
    """

    variable: Variable
    fitted: tuple[float, float]
    low: float
    high: float
    scale: Literal["log", "sparse", "linear"]

    def grid(self, points: int) -> Array:
        """Returns the grid (points,), rising."""
        if self.scale == "linear":
            return np.linspace(self.low, self.high, points)
        if self.scale == "sparse":
            return 1 - np.geomspace(1 - self.low, 1 - self.high, points)
        return np.geomspace(self.low, self.high, points)


def fitted_laws(material: Material, fits: Iterable[LossFit]) -> list[dict[str, Any]]:
    """Returns the laws of all fits of losses that are not split, as the page reads them."""
    whole = [fit for fit in fits if not fit.spec.split_by]
    made = [material.attempt(partial(_law, material, fit)) for fit in whole]
    return [law for law in made if law is not None]


def axis(variable: Variable, measured: Array, fitted: Array) -> Axis:
    """Returns the range of a variable's grid: what was ``measured`` and somewhat beyond.

    ``fitted`` are those of the values that were not held out.
    """
    low, high = float(measured.min()), float(measured.max())
    within = float(fitted.min()), float(fitted.max())
    if variable.domain is SPARSITY:
        ends = max(0.0, 1 - BEYOND * (1 - low)), 1 - (1 - high) / BEYOND
        return Axis(variable, within, *ends, "sparse")
    if low <= 0:
        return Axis(variable, within, low, high + (high - low) * (BEYOND - 1), "linear")
    least = 1.0 if variable.domain is AT_LEAST_1 else 0.0
    most = 1.0 if variable.domain is FRACTION else math.inf
    return Axis(variable, within, max(least, low / BEYOND), min(most, high * BEYOND), "log")


def points(bends: Sequence[float]) -> list[int]:
    """Returns the number of points of each axis, more where the law bends more.

    The error of a straight line between two points grows with the square of their distance, and
    with the ``bends`` of the law: the root of its mean second difference along each axis.
    """
    step = max(bends) / FINEST or 1.0
    while True:
        counts = [min(FINEST, max(FEWEST, 1 + round(bend / step))) for bend in bends]
        if math.prod(counts) <= MOST_POINTS:
            return counts
        step *= 1.02


def _law(material: Material, fit: LossFit) -> dict[str, Any] | None:
    """Returns one law; None where all variables have one value, so that nothing can be varied."""
    part, law = fit.report.parts[0], fit.law
    fitted, held_out = fit.rows(part)
    used = fitted | held_out
    values = {v.name: fit.values[v.name][used] for v in fit.variables}
    varied = [v for v in fit.variables if np.ptp(values[v.name]) > 0][:MOST]
    if not varied:
        return None
    axes = [axis(v, values[v.name], fit.values[v.name][fitted]) for v in varied]
    names = {v.name for v in varied}
    held = {name: float(np.median(x)) for name, x in values.items() if name not in names}
    counts = points(_bends(fit, part, axes, held))
    grids = [each.grid(n) for each, n in zip(axes, counts, strict=True)]
    mean, low, high = _predicted(fit, part, _columns(axes, grids, held))
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
        "variables": [_variable(fit, *each) for each in zip(axes, grids, strict=True)],
        "held": held,
        "mean": floats(rounded(mean, MANTISSA)),
        "low": floats(rounded(low, MANTISSA)),
        "high": floats(rounded(high, MANTISSA)),
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


def _columns(
    axes: Sequence[Axis], grids: Sequence[Array], held: dict[str, float]
) -> dict[str, Array]:
    """Returns each variable (n,) at all points of the grids, row-major."""
    meshes = np.meshgrid(*grids, indexing="ij")
    columns = {each.variable.name: mesh.ravel() for each, mesh in zip(axes, meshes, strict=True)}
    return columns | {name: np.full(meshes[0].size, value) for name, value in held.items()}


def _bends(
    fit: LossFit, part: FitPart, axes: Sequence[Axis], held: dict[str, float]
) -> list[float]:
    """Returns how much the fitted law bends along each axis, on a coarse grid."""
    columns = _columns(axes, [each.grid(COARSE) for each in axes], held)
    with np.errstate(all="ignore"):  # a fit that its rows hardly determine may overflow
        values = fit.law.on_scale(fit.law.predict(part.estimates(), columns))
        shaped = values.reshape([COARSE] * len(axes))
        seconds = [np.abs(np.diff(shaped, 2, i)) for i in range(len(axes))]
    # Where it does, no number of points would show it: the axis counts as straight there.
    return [float(np.nan_to_num(x, posinf=0.0).mean() ** 0.5) for x in seconds]


def _predicted(
    fit: LossFit, part: FitPart, columns: dict[str, Array]
) -> tuple[Array, Array, Array]:
    """Returns the response (n,) and the ends of its mean's interval."""
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


def _variable(fit: LossFit, each: Axis, grid: Array) -> dict[str, Any]:
    v = each.variable
    column = fit.sources.get(v.name, v.name)
    read = "" if column == v.name else f" (the column {column} of the runs)"
    return {
        "name": v.name,
        "unit": v.unit,
        "description": v.description + read,
        "grid": shortened(grid),
        "fitted": list(each.fitted),
        "log": each.scale == "log",
    }


def _of_held(held: dict[str, float], values: dict[str, Array]) -> list[str]:
    """Returns a sentence on each variable that has no slider though it was varied."""
    return [
        f"{name} has no slider: the law is shown at its median, {value:.4g}."
        for name, value in held.items()
        if np.ptp(values[name]) > 0
    ]
