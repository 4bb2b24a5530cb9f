"""How the isoFLOP surfaces' optima move with sparsity, size and budget: slopes with intervals.

The sparsity paper reads these trends off its figures (sec 2, 3, D.1, D.2). Here each is a slope
over the optima that lie inside what was measured, with an interval from the surfaces' draws.
Sparsity enters as v = -ln(1 - S): where v rises by one, 1/(1 - S) grows by a factor of e.
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

MIN_OPTIMA = 3  # that determine a slope
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
    """A coordinate of a minimum inside what was measured, by the estimates and by draws (B,)."""

    value: float
    draws: Array


@dataclass(frozen=True)
class Slope:
    """A slope with its draws (B,), of which there may be none; or a note why it is missing."""

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
    sparsities = sorted(surface.rows["S"].unique())
    optima = {-np.log1p(-S): size_optimum(surface, S, coordinate) for S in sparsities}
    return _through(f"C={surface.C:.3g}", optima, "sparsities")


def sizes_over_budget(budgets: Sequence[Surface]) -> Iterator[Slope]:
    """Yields the slope over ln C of the optima's ln N at each sparsity."""
    for S in sorted({float(S) for s in budgets for S in s.rows["S"]}):
        optima = {np.log(s.C): size_optimum(s, S, "x") for s in budgets}
        yield _through(f"S={S:.4g}", optima, "budgets", least=2)


def sparsity_over_size(surface: Surface) -> Slope:
    """Returns the slope over ln N of v* at one budget, through optima inside and near runs."""
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
    drawn = [(slope.value, slope.draws) for slope in slopes if slope.draws is not None]
    if not drawn:
        return [*slopes, Slope(MEAN, 0, note="no slope to average")]
    B = min(len(draws) for _, draws in drawn)
    mean_B = np.mean([draws[:B] for _, draws in drawn], axis=0)
    return [*slopes, Slope(MEAN, len(drawn), float(np.mean([v for v, _ in drawn])), mean_B)]


def size_optimum(surface: Surface, S: float, coordinate: Literal["x", "y"]) -> Optimum | None:
    """Returns ln N (``x``) or the loss (``y``) of the minimum over the sizes measured at ``S``.

    It is None where the minimum is not inside or fewer than three sizes were measured.
    """
    minimum = surface.size_minimum(S)
    if minimum is None or not minimum[0].inside[0]:
        return None
    best, draws = (getattr(minima, coordinate) for minima in minimum)
    return Optimum(float(best[0]), draws)


def _sizes(surfaces: Sequence[Surface]) -> Array:
    """Returns ln of ``SIZES`` sizes that span the range measured in all of the ``surfaces``."""
    low = max(float(np.log(s.rows[s.size].min())) for s in surfaces)
    high = min(float(np.log(s.rows[s.size].max())) for s in surfaces)
    return np.linspace(low, high, SIZES) if low < high else np.empty(0)


def _sparsity_optima(surface: Surface, sizes: Array) -> dict[float, Optimum]:
    """Maps ln N to v* for those ``sizes`` where v* is a minimum inside the grid and near runs."""
    optima = {}
    for u in sizes if not surface.one_sparsity else ():
        best, draws = surface.sparsity_minimum(u)
        if best.inside[0] and surface.near_runs(float(u), float(best.x[0])):
            optima[float(u)] = Optimum(float(best.x[0]), draws.x)
    return optima


def _through(
    where: str, optima: Mapping[float, Optimum | None], what: str, least: int = MIN_OPTIMA
) -> Slope:
    """Returns the least-squares slope of the ``optima`` over their keys, and of each draw."""
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
    draws = np.empty(0) if slope.draws is None else slope.draws
    low, high = percentile_interval(draws, level)
    row = {"trend": trend, "at": slope.at, "slope": slope.value, "low": low, "high": high}
    return row | {"unit": UNITS[trend], "level": level, "n": slope.n, "note": slope.note}
