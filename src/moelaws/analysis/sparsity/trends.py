"""How the isoFLOP surfaces' optima move with sparsity, size and budget: slopes with intervals.

The sparsity paper reads these trends off its figures (sec 2, 3, D.1, D.2). Here each is a slope
over the optima that lie inside what was measured, with the interval of the surfaces' draws.
Sparsity is v = -ln(1 - S) throughout: an e-fold of 1/(1 - S).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import Array, Minima, abscissae, minima, percentile_interval
from moelaws.analysis.sparsity_optima import SIZES, near_runs
from moelaws.analysis.surface import Surface, surfaces
from moelaws.tables.column import Column

LEAST = 3  # optima that a slope is drawn through
MEAN = "mean"

UNITS = {
    "N_over_S": "ln N* per e-fold of 1/(1-S)",
    "N_active_over_S": "ln N_a* per e-fold of 1/(1-S)",
    "L_over_S": "nats/token of L* per e-fold of 1/(1-S)",
    "S_over_N": "e-folds of 1/(1-S*) per e-fold of N",
    "S_over_C": "e-folds of 1/(1-S*) per e-fold of C",
    "N_active_over_C": "e-folds of N_a* per e-fold of C",
}

COLUMNS = (
    Column("trend", "string", "1", "what moves with what, such as N_over_S"),
    Column("at", "string", "1", "the budgets or the sparsity at which; mean: over all of these"),
    Column("slope", "float", "1", "in the unit that stands in `unit`", True),
    Column("low", "float", "1", "lower end of its interval, by the surfaces' draws", True),
    Column("high", "float", "1", "upper end of its interval, by the surfaces' draws", True),
    Column("unit", "string", "1", "of the slope and its ends"),
    Column("level", "float", "1", "coverage of the interval"),
    Column("n", "int", "1", "optima that the slope is drawn through; of a mean, its slopes"),
    Column("note", "string", "1", "why there is no slope; empty where there is one"),
)


@dataclass(frozen=True)
class Slope:
    """A slope with its draws (B,), which may be none; or why it is missing."""

    at: str
    n: int
    value: float = float("nan")
    draws: Array | None = None
    note: str = ""


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the fits ``isoflop_total`` and ``isoflop_active``.

    Raises:
        UserError: where a fit is missing or not split by C.
    """
    total = sorted(surfaces(inputs, "isoflop_total"), key=lambda s: s.C)
    active = sorted(surfaces(inputs, "isoflop_active"), key=lambda s: s.C)
    level = inputs.fit("isoflop_total").level
    found: dict[str, Iterable[Slope]] = {
        "N_over_S": (over_sparsity(s, "x") for s in total),
        "N_active_over_S": (over_sparsity(s, "x") for s in active),
        "L_over_S": (over_sparsity(s, "y") for s in total),
        "S_over_N": (sparsity_over_size(s) for s in total),
        "S_over_C": (sparsity_over_budget(*pair) for pair in pairwise(total)),
        "N_active_over_C": sizes_over_budget(active),
    }
    records = [
        _record(trend, slope, level)
        for trend, slopes in found.items()
        for slope in with_mean(list(slopes))
    ]
    return pd.DataFrame(records, columns=[c.name for c in COLUMNS])


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each slope that could not be drawn."""
    return [f"{row.trend}, {row.at}: {row.note}" for row in frame[frame["note"] != ""].itertuples()]


def over_sparsity(surface: Surface, what: Literal["x", "y"]) -> Slope:
    """Slope over v of the optima's ln N (``what`` x) or loss (y) at one budget."""
    v, values, draws = [], [], []
    for S in sorted(surface.rows["S"].unique()):
        found = size_optimum(surface, S)
        if found is not None and found[0].inside[0]:
            best, spread = found
            v.append(-np.log1p(-S))
            values.append(float(best.x[0] if what == "x" else best.y[0]))
            draws.append(spread.x if what == "x" else spread.y)
    return _through(f"C={surface.C:.3g}", np.array(v), values, draws, "sparsities")


def sizes_over_budget(of_budgets: Sequence[Surface]) -> Iterable[Slope]:
    """Slope over ln C of the optima's ln N at each sparsity."""
    for S in sorted({float(S) for s in of_budgets for S in s.rows["S"]}):
        u, values, draws = [], [], []
        for surface in of_budgets:
            found = size_optimum(surface, S)
            if found is not None and found[0].inside[0]:
                u.append(np.log(surface.C))
                values.append(float(found[0].x[0]))
                draws.append(found[1].x)
        yield _through(f"S={S:.4g}", np.array(u), values, draws, "budgets", least=2)


def sparsity_over_size(surface: Surface) -> Slope:
    """Slope over ln N of v* at one budget, through optima that lie inside and near runs."""
    u, values, draws = _sparsity_optima(surface, _sizes([surface]))
    return _through(f"C={surface.C:.3g}", u, values, draws, f"of {SIZES} sizes")


def sparsity_over_budget(lower: Surface, upper: Surface) -> Slope:
    """Change of v* over that of ln C at one size, averaged over the sizes with both optima."""
    where = f"C={lower.C:.3g} to {upper.C:.3g}"
    sizes = _sizes([lower, upper])
    found = [
        {u: (v, own) for u, v, own in zip(*_sparsity_optima(s, sizes), strict=True)}
        for s in (lower, upper)
    ]
    both = sorted(set(found[0]) & set(found[1]))
    if len(both) < LEAST:
        return Slope(where, len(both), note=_few(len(both), "sizes shared by both budgets"))
    width = np.log(upper.C / lower.C)
    B = min(len(own) for side in found for _, own in side.values())
    values = [(found[1][u][0] - found[0][u][0]) / width for u in both]
    draws = [(found[1][u][1][:B] - found[0][u][1][:B]) / width for u in both]
    return Slope(where, len(both), float(np.mean(values)), np.mean(draws, axis=0))


def with_mean(slopes: Sequence[Slope]) -> list[Slope]:
    """The slopes and their mean; the draws of different budgets are independent."""
    there = [s for s in slopes if s.draws is not None]
    if not there:
        return [*slopes, Slope(MEAN, 0, note="no slope to average")]
    B = min(len(s.draws) for s in there if s.draws is not None)
    draws = np.mean([s.draws[:B] for s in there if s.draws is not None], axis=0)
    return [*slopes, Slope(MEAN, len(there), float(np.mean([s.value for s in there])), draws)]


def size_optimum(surface: Surface, S: float) -> tuple[Minima, Minima] | None:
    """The minimum over the sizes measured at ``S``, of the estimates and of the draws.

    None where fewer than three sizes were measured.
    """
    sizes = at(surface.rows, "S", S)[surface.size]
    if sizes.nunique() < LEAST:
        return None
    u_3 = abscissae(float(np.log(sizes.min())), float(np.log(sizes.max())))
    here = np.exp(u_3), np.full(3, S)
    low, high = float(u_3[0]), float(u_3[2])
    return minima(surface.loss(*here), low, high), minima(surface.loss_draws(*here), low, high)


def _sizes(of: Sequence[Surface]) -> Array:
    """ln of ``SIZES`` sizes from the smallest to the largest measured in all of these."""
    low = max(float(np.log(s.rows[s.size].min())) for s in of)
    high = min(float(np.log(s.rows[s.size].max())) for s in of)
    return np.linspace(low, high, SIZES) if low < high else np.empty(0)


def _sparsity_optima(surface: Surface, sizes: Array) -> tuple[Array, list[float], list[Array]]:
    """ln N, v* and its draws where v* is a minimum inside the grid and near runs."""
    measured = surface.sizes_measured()
    low, high = float(measured["v"].min()), float(measured["v"].max())
    u_found, values, draws = [], [], []
    for u in sizes if low < high else ():
        v_3 = abscissae(low, high)
        here = np.full(3, np.exp(u)), -np.expm1(-v_3)
        best = minima(surface.loss(*here), low, high)
        if best.inside[0] and near_runs(measured, float(u), float(best.x[0])):
            u_found.append(float(u))
            values.append(float(best.x[0]))
            draws.append(minima(surface.loss_draws(*here), low, high).x)
    return np.array(u_found), values, draws


def _through(
    where: str, x: Array, values: list[float], draws: list[Array], what: str, least: int = LEAST
) -> Slope:
    """The least-squares slope of ``values`` (n,) and of each of ``draws`` (n, B) over ``x``."""
    if len(x) < least:
        return Slope(where, len(x), note=_few(len(x), what))
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    B = min(len(own) for own in draws)
    drawn = np.array([own[:B] for own in draws])
    return Slope(where, len(x), float(weights @ np.array(values)), weights @ drawn)


def _few(n: int, what: str) -> str:
    return f"only {n} {what} have an optimum inside what was measured"


def _record(trend: str, slope: Slope, level: float) -> dict[str, Any]:
    none = np.empty(0)
    low, high = percentile_interval(none if slope.draws is None else slope.draws, level)
    return {
        "trend": trend,
        "at": slope.at,
        "slope": slope.value,
        "low": low,
        "high": high,
        "unit": UNITS[trend],
        "level": level,
        "n": slope.n,
        "note": slope.note,
    }
