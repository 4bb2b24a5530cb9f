"""The allocation paper's claims on the ratio r of expert to attention FLOPs: a rule for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.analysis.regression import LEVEL, contrast, indicators, of_mean
from moelaws.claims.base import Evidence
from moelaws.studies.allocation.derived.r_star import DRAWS, MIN_RATIOS, Cell, cells_of

DENSE, SPARSE = 0.9, 0.95  # sparsities between which the paper says nothing of r* and 1
MISALLOCATION = 1.2  # r over its optimum: 20 % too large
PRINTED_AT = 2e20  # FLOPs: the budget at which the paper prints the cost of such a misallocation


@dataclass(frozen=True)
class Trend:
    """A contrast of a linear model of ln r*, (n,) pairs of budget and sparsity."""

    X: Array  # (n, p) the model
    weights: Array  # (p,) of its coefficients
    null: Array  # (n, q) the model without the effect


def over_compute(table: pd.DataFrame) -> Trend:
    """Returns beta_r = d ln r*/d ln C, one slope for all sparsities, with a level for each S."""
    return _common_slope(np.log(table["C"].to_numpy(float)), indicators(table["S"]))


def over_sparsity(table: pd.DataFrame) -> Trend:
    """Returns d ln r*/d ln(1 - S) with a level for each budget."""
    return _common_slope(np.log1p(-table["S"].to_numpy(float)), indicators(table["C"]))


def _common_slope(x: Array, own: Array) -> Trend:
    return Trend(np.column_stack([x, own]), np.eye(1 + own.shape[1])[0], own)


def exponent_difference(table: pd.DataFrame) -> Trend:
    """Returns beta_r at the least sparsity minus beta_r at the largest, each a slope of its own."""
    ln_C, own = np.log(table["C"].to_numpy(float))[:, None], indicators(table["S"])
    unit = np.eye(2 * own.shape[1])
    weights = unit[0] - unit[own.shape[1] - 1]
    return Trend(np.hstack([own * ln_C, own]), weights, np.hstack([ln_C, own]))


TRENDS = {of.__name__: of for of in (over_compute, over_sparsity, exponent_difference)}


def estimated(trend: Trend, table: pd.DataFrame, column: str = "r_raw") -> Effect:
    """Returns the trend of ``column`` by least squares, with Student's interval."""
    y = np.log(table[column].to_numpy(float))
    known = np.isfinite(y)
    if not trend.weights.any():
        return Effect(math.nan, n=int(known.sum()))
    return contrast(trend.X[known], y[known], trend.weights)


def null_draws(trend: Trend, cells: Sequence[Cell], noise: float) -> Array:
    """Draws the trend of raw r* (DRAWS,) where r* lacks the effect, on the same grid.

    All losses are fitted by parabolas in ln r. Their curvature is a product of one factor for the
    budget and one for the sparsity, and their vertices follow the trend's ``null``. Losses are
    drawn about them with the ``noise`` (nats/token) and the ratio of least loss is chosen among
    those of the grid. So the draws hold what coarse ratios and shallow valleys do to r*: it moves
    to the middle of the grid. NaN where the noise is unknown.
    """
    if not np.isfinite(noise) or not all(len(cell.r) >= MIN_RATIOS for cell in cells):
        return np.full(DRAWS, np.nan)
    of = np.repeat(np.arange(len(cells)), [len(cell.r) for cell in cells])
    u, L = (np.concatenate(x) for x in zip(*((np.log(c.r), c.L) for c in cells), strict=True))
    own = indicators(of)
    k = np.array([np.polyfit(np.log(cell.r), cell.L, 2)[0] for cell in cells])
    means = [pd.Series(k).groupby([getattr(c, x) for c in cells]).transform("mean") for x in "CS"]
    curve = np.maximum(means[0] * means[1] / k.mean(), 0.0).to_numpy()[of]
    held = np.hstack([own, -2 * (curve * u)[:, None] * trend.null[of]])
    vertex = trend.null @ np.linalg.lstsq(held, L - curve * u**2, rcond=None)[0][len(cells) :]
    rng, y = np.random.default_rng(0), np.empty((len(cells), DRAWS))
    for i, cell in enumerate(cells):
        drawn = rng.standard_normal((DRAWS, len(cell.r))) * noise / np.sqrt(cell.seeds)
        mean = curve[of == i] * (np.log(cell.r) - np.clip(vertex[i], *np.log(cell.r[[0, -1]]))) ** 2
        y[i] = np.log(cell.r)[(mean + drawn).argmin(axis=1)]
    return trend.weights @ np.linalg.pinv(trend.X) @ y


def valley(cells: Sequence[Cell]) -> tuple[Effect, Effect, Effect]:
    """Returns c of L = a_g + b_g ln r + c ln(r)^2, and how steeply L rises out of both ends of r.

    These are means over g of -dL/d ln r at the least ratio and of dL/d ln r at the largest. Each
    budget and sparsity g has a level and a slope of its own; all are in nats/token. A deviation by
    a factor f from the optimum of such a valley costs c ln(f)^2.
    """
    used = [cell for cell in cells if len(cell.r) >= MIN_RATIOS]
    if not used:
        return (Effect(math.nan),) * 3
    ln_r = [np.log(cell.rows["r"].to_numpy(float)) for cell in used]
    u = np.concatenate([x - x.mean() for x in ln_r])
    L = np.concatenate([cell.rows["L"].to_numpy(float) for cell in used])
    of = np.repeat(np.arange(len(used)), [len(cell.rows) for cell in used])
    own = indicators(of)
    X = np.column_stack([u**2, own * u[:, None], own])
    curvature = np.eye(X.shape[1])[0]
    slope = np.where(np.arange(X.shape[1]) <= len(used), 1 / len(used), 0.0) * (curvature == 0)
    lowest, highest = (2 * np.mean([end(x) - x.mean() for x in ln_r]) for end in (np.min, np.max))
    ends = -slope - lowest * curvature, slope + highest * curvature
    return contrast(X, L, curvature), contrast(X, L, ends[0]), contrast(X, L, ends[1])


def crosses_one(inputs: Inputs) -> Evidence:
    """Measures how far r* lies above 1 below a sparsity of 90 %, and below 1 above 95 %.

    A grid says of r* that it lies between the midpoints to the next ratios, in ln r.
    """
    sides: dict[str, list[tuple[float, float]]] = {"above": [], "below": []}
    for cell in cells_of(inputs.completed):
        u, best = np.log(cell.r), int(np.argmin(cell.L))
        middles = [-math.inf, *(u[1:] + u[:-1]) / 2, math.inf]
        if cell.S < DENSE:
            sides["above"].append((middles[best], middles[best + 1]))
        elif cell.S > SPARSE:
            sides["below"].append((-middles[best + 1], -middles[best]))
    decides = [Effect(math.nan, _mean_end(x, 0), _mean_end(x, 1)) for x in sides.values()]
    said = "; ".join(
        f"{name} 1 by {side.low:.3g} to {side.high:.3g} ({len(x)} pairs)"
        for (name, x), side in zip(sides.items(), decides, strict=True)
    )
    measured = f"mean ln r* at sparsities below 90 % and above 95 % lies: {said}"
    low, high = min((side.low, side.high) for side in decides)
    return Evidence(measured.replace("nan", "?"), Effect(low, low, high), "1", decides)


def _mean_end(ends: list[tuple[float, float]], which: int) -> float:
    """Returns the outer end of Student's interval of the mean of lower (0) or upper (1) ends."""
    x = np.array(ends)[:, which] if len(ends) > 1 else np.array([math.nan])
    if np.isinf(x).any():
        return float(x[np.isinf(x)][0])
    return of_mean(x).interval[1 + which]


def has_a_valley(inputs: Inputs) -> Evidence:
    """Measures how steeply the loss falls at the least ratio and rises at the largest."""
    trend, falls, rises = valley(cells_of(inputs.completed))
    table = inputs.derived("r_star")
    inside = int((table["parabola_note"] == "").sum())
    measured = (
        f"with ln r the loss falls by {falls} nats/token an e-fold at the least ratio and rises by "
        f"{rises} at the largest, means over pairs of budget and sparsity; its curvature is "
        f"{trend}, by {trend.n} runs. {inside} of {len(table)} pairs have the minimum of their own "
        "parabola inside the ratios measured"
    )
    least = min(falls, rises, key=lambda x: x.value)
    return Evidence(measured, least, "nats/token", [falls, rises])


def misallocation_is_costly(inputs: Inputs) -> Evidence:
    """Measures what a ratio 20 % off the optimum costs, by the curvature of the valleys."""
    cost = valley(cells_of(inputs.completed))[0] * math.log(MISALLOCATION) ** 2
    measured = (
        f"a ratio 20 % off the optimum costs {cost} nats/token by the curvature of "
        f"{cost.n} runs' losses; the paper's own Table 1 gives 0.004 to 0.009"
    )
    far = inputs.completed["C"].max() < PRINTED_AT / 10
    needed = "budgets near 2e20 FLOPs: tier paper" if far else ""
    return Evidence(measured, cost, "nats/token", [] if far else None, needed)


def of_optima(inputs: Inputs, trend: str, what: str) -> Evidence:
    """Measures a trend of raw r*, called ``what``, beyond that of its null.

    The interval holds both Student's about the trend and that of the null's draws. Nothing decides
    where half of the r* or more are an end of the grid, which only bounds r*.
    """
    table = inputs.derived("r_star")
    own = TRENDS[trend](table)
    t, parabolas = estimated(own, table), estimated(own, table, "r_parabola")
    drawn = null_draws(own, cells_of(inputs.completed), float(table["noise"].iloc[0]))
    null = Effect(float(drawn.mean()), *percentile_interval(drawn, LEVEL))
    ends_of = (t.low - null.value, t.high - null.value, t.value - null.high, t.value - null.low)
    # Where all r* are one ratio of the grid, what is left is rounding.
    low, high = (round(float(end(ends_of)), 9) for end in (np.min, np.max))
    ends = int((table["note"] != "").sum())
    measured = (
        f"{what} is {t} by the raw r* of {t.n} pairs of budget and sparsity, {parabolas} by "
        f"parabolas. Without the effect it would be {null} on this grid with the noise of these "
        f"runs. {ends} of {len(table)} r* are an end of the ratios measured"
    )
    beyond = Effect(t.value - null.value, low, high)
    return Evidence(measured, beyond, "1", [] if 2 * ends >= len(table) else None)
