"""The allocation paper's claims on the ratio r of expert to attention FLOPs: a rule for each."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.analysis.predictions import excess, predicted, rmse
from moelaws.analysis.regression import LEVEL, contrast, indicators, of_mean
from moelaws.claims.base import Evidence
from moelaws.studies.allocation.derived.r_star import DRAWS, MIN_RATIOS, Cell, cells_of
from moelaws.studies.allocation.laws.ratio import beta_r

DENSE, SPARSE = 0.9, 0.95  # sparsities between which the paper says nothing of r* and 1
MISALLOCATION = 1.2  # r over its optimum: 20 % too large
PRINTED_AT = 2e20  # FLOPs: the budget at which the paper prints the cost of such a misallocation
PRINTED_RISE = 0.4  # by which r* rises from S = 97.67 % to 82.35 %, as the paper prints it


@dataclass(frozen=True)
class Trend:
    """A contrast of a linear model of ln r*, (n,) pairs of budget and sparsity."""

    X: Array  # (n, p) the model
    weights: Array  # (p,) of its coefficients
    null: Array  # (n, q) the model without the effect


def over_compute(table: pd.DataFrame) -> Trend:
    """Returns beta_r = d ln r*/d ln C, one slope for all sparsities, with a level for each S."""
    ln_C, own = np.log(table["C"].to_numpy(float)), indicators(table["S"])
    return Trend(np.column_stack([ln_C, own]), np.eye(1 + own.shape[1])[0], own)


def exponent_difference(table: pd.DataFrame) -> Trend:
    """Returns beta_r at the least sparsity minus beta_r at the largest, each a slope of its own."""
    ln_C, own = np.log(table["C"].to_numpy(float))[:, None], indicators(table["S"])
    unit = np.eye(2 * own.shape[1])
    weights = unit[0] - unit[own.shape[1] - 1]
    return Trend(np.hstack([own * ln_C, own]), weights, np.hstack([ln_C, own]))


def over_sparsity(table: pd.DataFrame) -> Trend:
    """Returns d ln r*/d ln(1 - S) with a level for each budget."""
    ln_active, own = np.log1p(-table["S"].to_numpy(float)), indicators(table["C"])
    return Trend(np.column_stack([ln_active, own]), np.eye(1 + own.shape[1])[0], own)


def estimated(trend: Trend, table: pd.DataFrame, column: str = "r_raw") -> Estimate:
    """Returns the trend of ``column`` by least squares, with Student's interval."""
    y = np.log(table[column].to_numpy(float))
    known = np.isfinite(y)
    if not trend.weights.any():
        return Estimate(math.nan, math.nan, math.nan, int(known.sum()))
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
    return np.asarray(trend.weights @ np.linalg.pinv(trend.X) @ y)


def valley(cells: Sequence[Cell]) -> tuple[Estimate, Estimate, Estimate]:
    """Returns c of L = a_g + b_g ln r + c ln(r)^2, and how steeply L rises out of both ends of r.

    These are means over g of -dL/d ln r at the least ratio and of dL/d ln r at the largest. Each
    budget and sparsity g has a level and a slope of its own; all are in nats/token. A deviation by
    a factor f from the optimum of such a valley costs c ln(f)^2.
    """
    used = [cell for cell in cells if len(cell.r) >= MIN_RATIOS]
    if not used:
        nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
        return nothing, nothing, nothing
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


def rises_with_compute(inputs: Inputs) -> Evidence:
    """Measures beta_r, the exponent of compute in r*, as one for all sparsities."""
    S = inputs.derived("r_star")["S"]
    return _of_optima(
        inputs,
        over_compute,
        f"beta_r common to {S.nunique()} sparsities (published "
        f"{beta_r(S.max()):.2g} to {beta_r(S.min()):.2g})",
    )


def steeper_when_denser(inputs: Inputs) -> Evidence:
    """Measures beta_r at the least sparsity minus beta_r at the largest."""
    dense, sparse = (getattr(inputs.derived("r_star")["S"], end)() for end in ("min", "max"))
    return _of_optima(
        inputs,
        exponent_difference,
        f"beta_r at S = {100 * dense:.2f} % minus beta_r at {100 * sparse:.2f} % (published "
        f"{beta_r(dense) - beta_r(sparse):.2g})",
    )


def more_experts_when_denser(inputs: Inputs) -> Evidence:
    """Measures the elasticity of r* in the active fraction, d ln r*/d ln(1-S)."""
    return _of_optima(
        inputs,
        over_sparsity,
        f"d ln r*/d ln(1-S) (the paper's rise of over {PRINTED_RISE:.0%} from 97.67 % to 82.35 % "
        "is .17 or more; by its own coefficients it is 18 % at 1e20 and 35 % at 1e21 FLOPs, "
        "reversed below 5.4e18)",
    )


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
    decides = [(_mean_end(x, 0), _mean_end(x, 1)) for x in sides.values()]
    said = "; ".join(
        f"{name} 1 by {low:.3g} to {high:.3g} ({len(x)} pairs)"
        for (name, x), (low, high) in zip(sides.items(), decides, strict=True)
    )
    measured = f"mean ln r* at sparsities below 90 % and above 95 % lies: {said}"
    low, high = min(decides)
    return Evidence(measured.replace("nan", "?"), low, low, high, "1", decides)


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
    decides = [falls.interval[1:], rises.interval[1:]]
    return Evidence(measured, *least.interval, "nats/token", decides)


def misallocation_is_costly(inputs: Inputs) -> Evidence:
    """Measures what a ratio 20 % off the optimum costs, by the curvature of the valleys."""
    cost = valley(cells_of(inputs.completed))[0] * math.log(MISALLOCATION) ** 2
    measured = (
        f"a ratio 20 % off the optimum costs {cost} nats/token by the curvature of "
        f"{cost.n} runs' losses; the paper's own Table 1 gives 0.004 to 0.009"
    )
    far = inputs.completed["C"].max() < PRINTED_AT / 10
    needed = "budgets near 2e20 FLOPs: tier paper" if far else ""
    return Evidence(measured, *cost.interval, "nats/token", [] if far else None, needed)


def beats_the_baselines(inputs: FittedInputs) -> Evidence:
    """Measures how much larger the baselines' errors on held-out runs are than that of Eq 2."""
    runs = inputs.derived("runs")
    ours = predicted(inputs, "loss", runs)
    n = int(ours.held.sum())
    if not n:
        return Evidence("no run is held out", needed="runs at two sparsities or more")
    names = ("Wang", "Abnar", "Chinchilla")
    baselines = {name: predicted(inputs, name.lower(), runs) for name in names}
    excesses = {name: excess(baseline, ours) for name, baseline in baselines.items()}
    errors = "; ".join(
        f"{name} {rmse(baselines[name], baselines[name].held):.3g} "
        f"(more by {more.value:.3g}, {more.low:.3g} to {more.high:.3g})"
        for name, more in excesses.items()
    )
    own = rmse(ours, ours.held)
    measured = f"root mean square error on {n} held-out runs, nats/token: Eq 2 {own:.3g}; {errors}"
    closest = min(excesses.values(), key=lambda more: more.value)
    decides = [(more.low, more.high) for more in excesses.values()]
    return Evidence(measured, *closest.interval, "nats/token", decides)


def share_fits_best(inputs: FittedInputs) -> Evidence:
    """Measures how much larger the squared errors are with the forms that the paper gave up."""
    runs = inputs.derived("runs")
    forms = {"ln(1+r)": "loss_log1p", "1-exp(-r)": "loss_exp"}
    own, *others = (predicted(inputs, name, runs) for name in ("loss", *forms.values()))
    used, L = own.used, runs["L"].to_numpy(float)
    excesses = [of_mean(((x.value - L) ** 2 - (own.value - L) ** 2)[used]) for x in others]
    said = "; ".join(f"{name} by {more}" for name, more in zip(forms, excesses, strict=True))
    measured = f"mean square error on {int(used.sum())} fitted runs above that of r/(1+r): {said}"
    least = min(excesses, key=lambda more: more.value)
    decides = [more.interval[1:] for more in excesses]
    return Evidence(measured, *least.interval, "(nats/token)^2", decides)


def _of_optima(inputs: Inputs, of: Callable[[pd.DataFrame], Trend], what: str) -> Evidence:
    """Returns a trend of raw r* beyond that of its null as evidence.

    The interval holds both Student's about the trend and that of the null's draws. Nothing decides
    where half of the r* or more are an end of the grid, which only bounds r*.
    """
    table = inputs.derived("r_star")
    trend = of(table)
    t, parabolas = estimated(trend, table), estimated(trend, table, "r_parabola")
    drawn = null_draws(trend, cells_of(inputs.completed), float(table["noise"].iloc[0]))
    null = Estimate(float(drawn.mean()), *percentile_interval(drawn, LEVEL), len(table))
    ends_of = (t.low - null.value, t.high - null.value, t.value - null.high, t.value - null.low)
    # Where all r* are one ratio of the grid, what is left is rounding.
    low, high = round(float(np.min(ends_of)), 9), round(float(np.max(ends_of)), 9)
    ends = int((table["note"] != "").sum())
    measured = (
        f"{what} is {t} by the raw r* of {t.n} pairs of budget and sparsity, {parabolas} by "
        f"parabolas. Without the effect it would be {null} on this grid with the noise of these "
        f"runs. {ends} of {len(table)} r* are an end of the ratios measured"
    )
    decides: list[tuple[float, float]] | None = [] if 2 * ends >= len(table) else None
    return Evidence(measured, t.value - null.value, low, high, "1", decides)
