"""How the isoFLOP surfaces' optima move with sparsity, size and budget: slopes with intervals.

The sparsity paper reads these trends off its figures (sec 2, 3, D.1, D.2). Here each is a slope
over the optima that lie inside what was measured, with an interval from the surfaces' draws. Beside
it stands the same slope of the trend's null (``derived.null``), and what is left beyond that.
Sparsity enters as v = -ln(1 - S): where v rises by one, 1/(1 - S) grows by a factor of e.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.analysis.regression import slope_weights
from moelaws.studies.sparsity.derived.null import without_budget, without_sparsity
from moelaws.studies.sparsity.derived.optima import SIZES
from moelaws.studies.sparsity.derived.surface import Surface, surfaces
from moelaws.tables.column import Column, estimated

MIN_OPTIMA = 3  # that determine a slope
SURE = 0.95
MEAN = "mean"

UNITS = {
    "N_over_S": "ln N* per e-fold of 1/(1-S)",
    "N_active_over_S": "ln N_a* per e-fold of 1/(1-S)",
    "L_over_S": "nats/token of L* per e-fold of 1/(1-S)",
    "S_over_N": "e-folds of 1/(1-S*) per e-fold of N",
    "S_at_dense": "e-folds of 1/(1-S*) at the best dense size",
    "S_over_C": "e-folds of 1/(1-S*) per e-fold of C",
    "N_active_over_C": "e-folds of N_a* per e-fold of C",
    "L_over_S_over_C": "of the mean slope of L* over S per e-fold of C",
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
    *estimated("null", "1", "slope of these runs if the effect were not there", "null"),
    *estimated("beyond", "1", "slope less null, paired", "beyond"),
    Column("unit", "string", "1", "of the slopes and their ends"),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("n", "int", "1", "optima that the slope is drawn through; of a mean, its slopes"),
    Column("note", "string", "1", "why the slope or its null is missing; empty where both are"),
)
def derive(inputs: FittedInputs) -> Rows:
    """Returns the slopes of the fits ``isoflop_total`` and ``isoflop_active``."""
    total = sorted(surfaces(inputs, "isoflop_total"), key=lambda s: s.C)
    active = sorted(surfaces(inputs, "isoflop_active"), key=lambda s: s.C)
    return beside_nulls(total, active, inputs.fit("isoflop_total").level)


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Returns a line for each slope that could not be drawn."""
    return [f"{row.trend}, {row.at}: {row.note}" for row in frame[frame["note"] != ""].itertuples()]


def trends(total: Sequence[Surface], active: Sequence[Surface]) -> dict[str, list[Slope]]:
    """Returns each trend's slopes, by the surfaces over total and over active size."""
    return {
        "N_over_S": [over_sparsity(s, "x") for s in total],
        "N_active_over_S": [over_sparsity(s, "x") for s in active],
        "L_over_S": [over_sparsity(s, "y") for s in total],
        "S_over_N": [sparsity_over_size(s) for s in total],
        "S_at_dense": [sparsity_at_dense(s) for s in total],
        "S_over_C": [sparsity_over_budget(*pair) for pair in pairwise(total)],
        "N_active_over_C": list(sizes_over_budget(active)),
    }


def beside_nulls(
    total: Sequence[Surface], active: Sequence[Surface], level: float
) -> list[dict[str, Any]]:
    """Returns the table's rows: each trend's slopes and their means, beside those of the null.

    The null of ``N_active_over_C`` has one best active size at all budgets. In that of the other
    trends FLOPs and tokens alone set the loss.
    """
    compared = trends(total, active)
    nulls = trends(without_sparsity(total), without_sparsity(active))
    nulls["N_active_over_C"] = list(sizes_over_budget(without_budget(active)))
    rows = [
        _record(trend, own, null, level)
        for trend, slopes in compared.items()
        for own, null in with_means(slopes, nulls[trend])
    ]
    change = slope_over_budget(total, compared["L_over_S"])
    return [*rows, _record("L_over_S_over_C", change, Slope("", 0), level)]


def over_sparsity(surface: Surface, coordinate: Literal["x", "y"]) -> Slope:
    """Returns the slope over v of the optima's ln N (``x``) or loss (``y``) at one budget."""
    sparsities = sorted(surface.rows["S"].unique())
    optima = {-np.log1p(-S): size_optimum(surface, S, coordinate) for S in sparsities}
    return _through(f"C={surface.C:.3g}", optima, "sparsities")


def sizes_over_budget(budgets: Sequence[Surface]) -> Iterator[Slope]:
    """Yields the slope over ln C of the optima's ln N at each sparsity.

    Sizes are chosen to grow with the budget, so that an optimum which noise alone moves inside
    would grow with it. So only optima count that ``SURE`` of the draws have inside.
    """
    for S in sorted({float(S) for s in budgets for S in s.rows["S"]}):
        optima = {
            np.log(s.C): size_optimum(s, S, "x")
            for s in budgets
            if (known := s.size_minimum(S)) and np.mean(known[1].inside) >= SURE
        }
        yield _through(f"S={S:.4g}", optima, "budgets", least=2)


def sparsity_over_size(surface: Surface) -> Slope:
    """Returns the slope over ln N of v* at one budget, through optima inside and near runs."""
    optima = _sparsity_optima(surface, _sizes([surface]))
    return _through(f"C={surface.C:.3g}", optima, f"of {SIZES} sizes")


def sparsity_at_dense(surface: Surface) -> Slope:
    """Returns v* at the size that is best for the densest models of one budget.

    It is no slope, but it is compared with that of the null as slopes are.
    """
    where = f"C={surface.C:.3g}"
    size = size_optimum(surface, float(surface.rows["S"].min()), "x")
    if size is None or surface.one_sparsity:
        return Slope(where, 0, note="the densest models have no optimum inside what was measured")
    best, draws = surface.sparsity_minimum(size.value)
    return Slope(where, 1, float(best.x[0]), draws.x)


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


def slope_over_budget(total: Sequence[Surface], slopes: Sequence[Slope]) -> Slope:
    """Returns the slope over ln C of the budgets' ``slopes``, divided by their mean.

    No null is compared: where sparsity does nothing, the mean and so the interval tell nothing.
    """
    known = {
        np.log(s.C): None if slope.draws is None else Optimum(slope.value, slope.draws)
        for s, slope in zip(total, slopes, strict=True)
    }
    change = _through(MEAN, known, "budgets")
    average = mean([slope for slope in slopes if not slope.note])
    if change.draws is None or average.draws is None:
        return change
    draws = change.draws / average.draws  # of the same surfaces, so of equal number
    return Slope(change.at, change.n, change.value / average.value, draws)


def with_means(slopes: Sequence[Slope], nulls: Sequence[Slope]) -> list[tuple[Slope, Slope]]:
    """Returns the slopes with their nulls, and the means of those that have both."""
    pairs = list(zip(slopes, nulls, strict=True))
    both = [pair for pair in pairs if not any(slope.note for slope in pair)]
    own, null = (mean([pair[k] for pair in both]) for k in (0, 1))
    return [*pairs, (own, null)]


def mean(slopes: Sequence[Slope]) -> Slope:
    """Returns the mean of the slopes, whose draws are independent."""
    drawn = [slope.draws for slope in slopes if slope.draws is not None]
    if not drawn:
        return Slope(MEAN, 0, note="no slope to average")
    B = min(map(len, drawn))
    mean_B = np.mean([draws[:B] for draws in drawn], axis=0)
    return Slope(MEAN, len(drawn), float(np.mean([slope.value for slope in slopes])), mean_B)


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
    weights = slope_weights(x)
    B = min(len(optimum.draws) for optimum in inside.values())
    values = np.array([optimum.value for optimum in inside.values()])
    draws = np.array([optimum.draws[:B] for optimum in inside.values()])
    return Slope(where, len(inside), float(weights @ values), weights @ draws)


def _few(n: int, what: str) -> str:
    return f"too few {what} have an optimum inside what was measured: {n}"


def _record(trend: str, own: Slope, null: Slope, level: float) -> dict[str, Any]:
    drawn = [np.empty(0) if slope.draws is None else slope.draws for slope in (own, null)]
    B = min(map(len, drawn))
    missing = own.note or (null.note and f"of the null, {null.note}")
    row = {"trend": trend, "at": own.at, "unit": UNITS[trend], "level": level, "n": own.n}
    for name, value, draws in (
        ("slope", own.value, drawn[0]),
        ("null", null.value, drawn[1]),
        ("beyond", own.value - null.value, drawn[0][:B] - drawn[1][:B]),
    ):
        low, high = percentile_interval(draws, level)
        before = "" if name == "slope" else f"{name}_"
        row |= {name: value, f"{before}low": low, f"{before}high": high}
    return row | {"note": missing}
