"""How the isoFLOP surfaces' optima move with sparsity, size and budget: slopes with intervals.

The sparsity paper reads these trends off its figures (sec 2, 3, D.1, D.2). Here each is a slope
over the optima that lie inside what was measured, with the interval of the surfaces' draws.
Sparsity is v = -ln(1 - S) throughout: an e-fold of 1/(1 - S).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.studies.sparsity.derived.optima import SIZES
from moelaws.studies.sparsity.derived.surface import Surface, surfaces
from moelaws.tables.column import Column, estimated

MIN_OPTIMA = 3  # that a slope is drawn through
MEAN = "mean"

UNITS = {
    "N_over_S": "ln N* per e-fold of 1/(1-S)",
    "N_active_over_S": "ln N_a* per e-fold of 1/(1-S)",
    "L_over_S": "nats/token of L* per e-fold of 1/(1-S)",
    "S_over_N": "e-folds of 1/(1-S*) per e-fold of N",
    "S_over_C": "e-folds of 1/(1-S*) per e-fold of C",
    "N_active_over_C": "e-folds of N_a* per e-fold of C",
}


class Optimum(NamedTuple):
    """One coordinate of a minimum inside what was measured, by the estimates and draws (B,)."""

    value: float
    draws: Array


@dataclass(frozen=True)
class Slope:
    """A slope with its draws (B,), which may be none; or why it is missing."""

    at: str
    n: int
    value: float = float("nan")
    draws: Array | None = None
    note: str = ""


@table(
    Column("trend", "string", "1", "what moves with what, such as N_over_S"),
    Column("at", "string", "1", "the budgets or the sparsity at which; mean: over all of these"),
    *estimated("slope", "1", "in the unit that stands in `unit`", ""),
    Column("unit", "string", "1", "of the slope and its ends"),
    Column("level", "float", "1", "coverage of the interval"),
    Column("n", "int", "1", "optima that the slope is drawn through; of a mean, its slopes"),
    Column("note", "string", "1", "why there is no slope; empty where there is one"),
)
def derive(inputs: FittedInputs) -> Rows:
    """Returns the slopes of the fits ``isoflop_total`` and ``isoflop_active``."""
    total = sorted(surfaces(inputs, "isoflop_total"), key=lambda s: s.C)
    active = sorted(surfaces(inputs, "isoflop_active"), key=lambda s: s.C)
    level = inputs.fit("isoflop_total").level
    trends: dict[str, Iterable[Slope]] = {
        "N_over_S": (over_sparsity(s, "x") for s in total),
        "N_active_over_S": (over_sparsity(s, "x") for s in active),
        "L_over_S": (over_sparsity(s, "y") for s in total),
        "S_over_N": (sparsity_over_size(s) for s in total),
        "S_over_C": (sparsity_over_budget(*pair) for pair in pairwise(total)),
        "N_active_over_C": sizes_over_budget(active),
    }
    return [
        _record(trend, slope, level)
        for trend, slopes in trends.items()
        for slope in with_mean(list(slopes))
    ]


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Returns a line for each slope that could not be drawn."""
    return [f"{row.trend}, {row.at}: {row.note}" for row in frame[frame["note"] != ""].itertuples()]


def over_sparsity(surface: Surface, coordinate: Literal["x", "y"]) -> Slope:
    """Returns the slope over v of the optima's ln N (``x``) or loss (``y``) at one budget."""
    optima = {
        -np.log1p(-S): size_optimum(surface, S, coordinate)
        for S in sorted(surface.rows["S"].unique())
    }
    return _through(f"C={surface.C:.3g}", optima, "sparsities")


def sizes_over_budget(of_budgets: Sequence[Surface]) -> Iterator[Slope]:
    """Yields the slope over ln C of the optima's ln N at each sparsity."""
    for S in sorted({float(S) for s in of_budgets for S in s.rows["S"]}):
        optima = {np.log(s.C): size_optimum(s, S, "x") for s in of_budgets}
        yield _through(f"S={S:.4g}", optima, "budgets", least=2)


def sparsity_over_size(surface: Surface) -> Slope:
    """Returns the slope over ln N of v* at one budget, by optima that lie inside and near runs."""
    optima = _sparsity_optima(surface, _sizes([surface]))
    return _through(f"C={surface.C:.3g}", optima, f"of {SIZES} sizes")


def sparsity_over_budget(lower: Surface, upper: Surface) -> Slope:
    """Returns the change of v* over that of ln C, averaged over the sizes with both optima."""
    where = f"C={lower.C:.3g} to {upper.C:.3g}"
    sizes = _sizes([lower, upper])
    below, above = (_sparsity_optima(surface, sizes) for surface in (lower, upper))
    shared = sorted(set(below) & set(above))
    if len(shared) < MIN_OPTIMA:
        return Slope(where, len(shared), note=_few(len(shared), "sizes shared by both budgets"))
    width = np.log(upper.C / lower.C)
    B = min(len(optimum.draws) for optima in (below, above) for optimum in optima.values())
    values = [(above[u].value - below[u].value) / width for u in shared]
    draws = [(above[u].draws[:B] - below[u].draws[:B]) / width for u in shared]
    return Slope(where, len(shared), float(np.mean(values)), np.mean(draws, axis=0))


def with_mean(slopes: Sequence[Slope]) -> list[Slope]:
    """Returns the slopes and their mean; the draws of different budgets are independent."""
    values = [slope.value for slope in slopes if slope.draws is not None]
    draws = [slope.draws for slope in slopes if slope.draws is not None]
    if not draws:
        return [*slopes, Slope(MEAN, 0, note="no slope to average")]
    B = min(map(len, draws))
    mean_B = np.mean([own[:B] for own in draws], axis=0)
    return [*slopes, Slope(MEAN, len(draws), float(np.mean(values)), mean_B)]


def size_optimum(surface: Surface, S: float, coordinate: Literal["x", "y"]) -> Optimum | None:
    """Returns ln N (``x``) or the loss (``y``) of the minimum over the sizes measured at ``S``.

    There is none where it is not inside or fewer than three sizes were measured.
    """
    minimum = surface.size_minimum(S)
    if minimum is None or not minimum[0].inside[0]:
        return None
    best, draws = (getattr(minima, coordinate) for minima in minimum)
    return Optimum(float(best[0]), draws)


def _sizes(of: Sequence[Surface]) -> Array:
    """ln of ``SIZES`` sizes from the smallest to the largest measured in all of these."""
    low = max(float(np.log(s.rows[s.size].min())) for s in of)
    high = min(float(np.log(s.rows[s.size].max())) for s in of)
    return np.linspace(low, high, SIZES) if low < high else np.empty(0)


def _sparsity_optima(surface: Surface, sizes: Array) -> dict[float, Optimum]:
    """ln N -> v* where v* is a minimum inside the grid and near runs."""
    optima = {}
    for u in sizes if not surface.one_sparsity else ():
        best, draws = surface.sparsity_minimum(u)
        if best.inside[0] and surface.near_runs(float(u), float(best.x[0])):
            optima[float(u)] = Optimum(float(best.x[0]), draws.x)
    return optima


def _through(
    where: str, optima: Mapping[float, Optimum | None], what: str, least: int = MIN_OPTIMA
) -> Slope:
    """The least-squares slope over x, the keys, of the ``optima`` and of each of their draws."""
    inside = {x: optimum for x, optimum in optima.items() if optimum is not None}
    if len(inside) < least:
        return Slope(where, len(inside), note=_few(len(inside), what))
    x = np.array(list(inside))
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    B = min(len(optimum.draws) for optimum in inside.values())
    values = np.array([optimum.value for optimum in inside.values()])
    draws = np.array([optimum.draws[:B] for optimum in inside.values()])
    return Slope(where, len(inside), float(weights @ values), weights @ draws)


def _few(n: int, what: str) -> str:
    return f"only {n} {what} have an optimum inside what was measured"


def _record(trend: str, slope: Slope, level: float) -> dict[str, Any]:
    none = np.empty(0)
    low, high = percentile_interval(none if slope.draws is None else slope.draws, level)
    row = {"trend": trend, "at": slope.at, "slope": slope.value, "low": low, "high": high}
    return row | {"unit": UNITS[trend], "level": level, "n": slope.n, "note": slope.note}
