"""IsoFLOP curves: the loss over size at one budget, by the fits that are split by budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from moelaws.explore.encode import shortened
from moelaws.explore.fits import LossFit
from moelaws.explore.material import Material
from moelaws.explore.studies import source_of
from moelaws.fitting.prediction import of_draws
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import FitPart
from moelaws.laws.base import Array, Mask, Variable

BUDGET = "C"
POINTS = 41  # of a curve that is drawn
FINE = 5  # times as many to look for its minimum
LEAST_SIZES = 3  # that determine a minimum


@dataclass(frozen=True)
class Optimum:
    """The size of least loss of one curve.

    Attributes:
        x, low, high: the size and the interval of its draws; NaN ends without draws.
        L: the loss there.
        L_draws: (B,) of the least loss by each draw.
        bound: whether the least loss is at an end of the sizes measured.
    """

    x: float
    low: float
    high: float
    L: float
    L_draws: Array
    bound: bool


@dataclass(frozen=True)
class Curve:
    """The runs of one budget and one value of each other variable, and the fitted curve."""

    C: float
    others: dict[str, float]
    data: dict[str, Any]
    optimum: Optimum | None


@dataclass(frozen=True)
class IsoFlop:
    """The curves of one fit: budgets by sparsities."""

    fit: LossFit
    size: Variable
    column: str  # of the runs, which the law takes as the size
    curves: list[Curve]

    def as_dict(self, material: Material) -> dict[str, Any]:
        """Returns it as the page reads it."""
        what = "total" if "total" in self.column else "active" if "active" in self.column else ""
        return {
            "study": self.fit.study.study,
            "title": f"Loss over {what} parameters".replace("  ", " ")
            + f" at each budget ({self.fit.study.study}, fit {self.fit.spec.name})",
            "x": {"name": self.column, "unit": self.size.unit},
            "source": source_of(material, self.fit.study),
            "level": self.fit.report.level,
            "series": [curve.data for curve in self.curves],
        }


def isoflops(material: Material, fits: Iterable[LossFit]) -> list[IsoFlop]:
    """Returns the fits that are split by budget and have a size among their variables."""
    made = [material.attempt(partial(_isoflop, fit)) for fit in fits]
    return [each for each in made if each is not None]


def _isoflop(fit: LossFit) -> IsoFlop | None:
    sizes = [v for v in fit.variables if v.unit == "parameters"]
    if fit.spec.split_by != BUDGET or not sizes:
        return None
    size = sizes[0]
    curves = [curve for part in fit.report.parts for curve in _curves(fit, part, size)]
    return IsoFlop(fit, size, fit.sources.get(size.name, size.name), curves)


def _curves(fit: LossFit, part: FitPart, size: Variable) -> Iterator[Curve]:
    """Yields the curves of one budget, one for each value of the other variables."""
    fitted, held_out = fit.rows(part)
    used, draws = fitted | held_out, fit.draws(part)
    names = [v.name for v in fit.variables if v.name != size.name]
    kinds = np.column_stack([np.zeros(len(used)), *(fit.values[name] for name in names)])
    for kind in np.unique(kinds[used], axis=0):
        others = dict(zip(names, kind[1:].tolist(), strict=True))
        chosen = used & (kinds == kind).all(axis=1)
        yield _curve(fit, part, size, others, chosen, draws)


def _curve(
    fit: LossFit,
    part: FitPart,
    size: Variable,
    others: dict[str, float],
    chosen: Mask,
    draws: Array,
) -> Curve:
    x, L = fit.values[size.name][chosen], fit.values[fit.law.response.name][chosen]
    C = float(part.where[BUDGET])
    fine = np.geomspace(x.min(), x.max(), POINTS * FINE - FINE + 1)
    columns = {size.name: fine, **{name: np.full(len(fine), v) for name, v in others.items()}}
    value = fit.law.predict(part.estimates(), columns)
    drawn = of_draws(fit.law, draws, columns) if len(draws) else np.empty((0, len(fine)))
    low, high = percentiles(drawn, fit.report.level)
    found = len(np.unique(x)) >= LEAST_SIZES
    optimum = _optimum(fine, value, drawn, fit.report.level) if found else None
    label = ", ".join(f"{name} = {v:.4g}" for name, v in others.items())
    data = {
        "C": C,
        **others,
        "label": f"C = {C:.3g}" + (f", {label}" if label else ""),
        "run": [row for row, own in zip(fit.row, chosen, strict=True) if own],
        "x": shortened(x),
        "L": shortened(L),
        "curve": {
            "x": shortened(fine[::FINE]),
            "mean": shortened(value[::FINE]),
            "low": shortened(low[::FINE]),
            "high": shortened(high[::FINE]),
        }
        if x.min() < x.max()
        else None,
        "optimum": {
            **dict(zip(("x", "low", "high", "L"), _ends(optimum), strict=True)),
            "bound": optimum.bound,
        }
        if optimum
        else None,
    }
    return Curve(C, others, data, optimum)


def _ends(optimum: Optimum) -> list[float]:
    return shortened((optimum.x, optimum.low, optimum.high, optimum.L))


def _optimum(x: Array, value: Array, drawn: Array, level: float) -> Optimum:
    """Returns the lowest point of a curve over ``x`` (n,), with that of each draw (B, n)."""
    best, L, bound = _lowest(np.log(x), value[None])
    drawn_x, L_draws, _ = _lowest(np.log(x), drawn)
    low, high = percentiles(np.exp(drawn_x), level)
    ends = float(low), float(high)
    return Optimum(float(np.exp(best[0])), *ends, float(L[0]), L_draws, bool(bound[0]))


def _lowest(u: Array, y: Array) -> tuple[Array, Array, Mask]:
    """Returns where each of the curves y (B, n) over even ``u`` (n,) is least, and its value there.

    Between the points a parabola through the lowest and its neighbours decides, which is exact for
    a curve that is quadratic in ``u``. The third result tells which are least at an end.
    """
    at = y.argmin(axis=1)
    bound = (at == 0) | (at == len(u) - 1)
    inner = np.clip(at, 1, len(u) - 2)
    rows = np.arange(len(y))
    left, middle, right = y[rows, inner - 1], y[rows, inner], y[rows, inner + 1]
    curvature = left - 2 * middle + right
    with np.errstate(all="ignore"):
        shift = np.where(bound | ~(curvature > 0), 0.0, (left - right) / (2 * curvature))
    place = u[at] + shift * (u[1] - u[0])
    return place, y[rows, at] - shift**2 * curvature / 2, bound
