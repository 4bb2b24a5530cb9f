"""The allocation paper's claims on the ratio r of expert to attention FLOPs: a rule for each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.predictions import excess, predicted, rmse
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.studies.allocation.derived.r_star import MIN_RATIOS, Cell, cells_of
from moelaws.studies.allocation.laws.ratio import beta_r

LEVEL = 0.9
MISALLOCATION = 1.2  # r over its optimum: 20 % too large
PRINTED_AT = 2e20  # FLOPs: the budget at which the paper prints the cost of such a misallocation
PRINTED_RISE = 0.4  # by which r* rises from S = 97.67 % to 82.35 %, as the paper prints it


def over_compute(table: pd.DataFrame, column: str = "r_raw") -> Estimate:
    """Returns beta_r = d ln r*/d ln C, one slope for all sparsities, with a level for each S."""
    rows = table[table[column].notna()]
    ln_C = np.log(rows["C"].to_numpy(float))
    own = _indicators(rows["S"])
    ln_r = np.log(rows[column].to_numpy(float))
    return contrast(np.column_stack([ln_C, own]), ln_r, np.eye(1 + own.shape[1])[0])


def exponent_difference(table: pd.DataFrame) -> Estimate:
    """Returns beta_r at the least sparsity minus beta_r at the largest.

    Each beta_r is the slope of a line of its own through the raw r*.
    """
    own = _indicators(table["S"])
    if own.shape[1] < 2:
        return Estimate(float("nan"), float("nan"), float("nan"), len(table))
    slopes = own * np.log(table["C"].to_numpy(float))[:, None]
    weights = np.zeros(2 * own.shape[1])
    weights[0], weights[own.shape[1] - 1] = 1.0, -1.0
    return contrast(np.column_stack([slopes, own]), np.log(table["r_raw"].to_numpy(float)), weights)


def over_sparsity(table: pd.DataFrame) -> Estimate:
    """Returns d ln r*/d ln(1 - S) of raw r* with a level for each budget."""
    own = _indicators(table["C"])
    X = np.column_stack([np.log1p(-table["S"].to_numpy(float)), own])
    return contrast(X, np.log(table["r_raw"].to_numpy(float)), np.eye(X.shape[1])[0])


def curvature(cells: Sequence[Cell]) -> Estimate:
    """Returns c of L = a_g + b_g ln r + c ln(r)^2, nats/token.

    Each budget and sparsity g has a level and a slope of its own. A deviation by a factor f from
    the optimum of such a valley costs c ln(f)^2.
    """
    used = [cell for cell in cells if len(cell.r) >= MIN_RATIOS]
    if not used:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    ln_r = [np.log(cell.rows["r"].to_numpy(float)) for cell in used]
    u = np.concatenate([x - x.mean() for x in ln_r])
    L = np.concatenate([cell.rows["L"].to_numpy(float) for cell in used])
    of = np.repeat(np.arange(len(used)), [len(cell.rows) for cell in used])
    own = (of[:, None] == np.arange(len(used))).astype(float)
    X = np.column_stack([u**2, own, own * u[:, None]])
    return contrast(X, L, np.eye(X.shape[1])[0])


def contrast(X: Array, y: Array, weights: Array) -> Estimate:
    """Returns ``weights`` (p,) times the least-squares coefficients of ``y`` (n,) on ``X`` (n, p).

    Its interval follows from the residuals by Student's t. Value and interval are NaN where ``X``
    has fewer than p independent columns.
    """
    nan = float("nan")
    n, p = X.shape
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    Z = X / scale
    if n < p or np.linalg.matrix_rank(Z) < p:
        return Estimate(nan, nan, nan, n)
    coefficients, *_ = np.linalg.lstsq(Z, y, rcond=None)
    w = weights / scale
    value = float(w @ coefficients)
    if n == p:
        return Estimate(value, nan, nan, n)
    variance = float(np.sum((y - Z @ coefficients) ** 2)) / (n - p)
    error = float(np.sqrt(variance * (w @ np.linalg.inv(Z.T @ Z) @ w)))
    return Estimate(value, *t_interval(value, error, n - p, LEVEL), n)


def _indicators(values: pd.Series[float]) -> Array:
    """Returns an indicator column for each distinct value, in rising order: (n, values)."""
    rounded = values.to_numpy(float).round(12)
    return np.asarray((rounded[:, None] == np.unique(rounded)).astype(float))


def rises_with_compute(inputs: Inputs) -> Evidence:
    """Measures beta_r, the exponent of compute in r*, as one for all sparsities."""
    table = inputs.derived("r_star")
    trend, by_parabolas = over_compute(table), over_compute(table, "r_parabola")
    S = table["S"]
    measured = (
        f"beta_r common to {S.nunique()} sparsities is {trend} by the raw r* of "
        f"{trend.n} pairs of budget and sparsity, {by_parabolas} by parabolas; published "
        f"{beta_r(S.max()):.2g} to {beta_r(S.min()):.2g}"
    )
    return _of_optima(table, measured, trend)


def steeper_when_denser(inputs: Inputs) -> Evidence:
    """Measures beta_r at the least sparsity minus beta_r at the largest."""
    table = inputs.derived("r_star")
    trend = exponent_difference(table)
    dense, sparse = table["S"].min(), table["S"].max()
    measured = (
        f"beta_r at S = {100 * dense:.2f} % minus beta_r at {100 * sparse:.2f} % is "
        f"{trend} by the raw r* of {trend.n} pairs of budget and sparsity; published "
        f"{beta_r(dense) - beta_r(sparse):.2g}"
    )
    return _of_optima(table, measured, trend)


def more_experts_when_denser(inputs: Inputs) -> Evidence:
    """Measures the elasticity of r* in the active fraction, d ln r*/d ln(1-S)."""
    table = inputs.derived("r_star")
    trend = over_sparsity(table)
    dense, sparse = table["S"].min(), table["S"].max()
    rise = math.expm1(trend.value * math.log((1 - dense) / (1 - sparse)))
    in_percent = ""
    if math.isfinite(rise):
        in_percent = f": {rise:+.0%} from S = {100 * sparse:.2f} % to {100 * dense:.2f} %"
    measured = (
        f"d ln r*/d ln(1-S) is {trend} by the raw r* of {trend.n} pairs of budget and "
        f"sparsity{in_percent}. The paper says over {PRINTED_RISE:.0%} from 97.67 % to 82.35 % "
        "(its own coefficients: 18 % at 1e20 and 35 % at 1e21 FLOPs, reversed below 5.4e18)"
    )
    return _of_optima(table, measured, trend)


def has_a_valley(inputs: Inputs) -> Evidence:
    """Measures the curvature of the loss in ln r, as one for all budgets and sparsities."""
    trend = curvature(cells_of(inputs.completed))
    table = inputs.derived("r_star")
    inside = int((table["parabola_note"] == "").sum())
    measured = (
        f"curvature of the loss in ln r is {trend} nats/token, one for all, by "
        f"{trend.n} runs; {inside} of {len(table)} pairs of budget and sparsity have the minimum "
        f"of their own parabola inside the ratios measured"
    )
    return Evidence(measured, *trend.interval, "nats/token")


def misallocation_is_costly(inputs: Inputs) -> Evidence:
    """Measures what a ratio 20 % off the optimum costs, by the curvature of the valleys."""
    cost = curvature(cells_of(inputs.completed)) * math.log(MISALLOCATION) ** 2
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
    baselines = {name: predicted(inputs, name.lower(), runs) for name in ("Wang", "Abnar")}
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


def _of_optima(table: pd.DataFrame, measured: str, trend: Estimate) -> Evidence:
    """Returns a trend of r* as evidence.

    Nothing decides where half of the r* or more are an end of the grid, which only bounds r*.
    """
    ends = int((table["note"] != "").sum())
    measured += f". {ends} of {len(table)} r* are an end of the ratios measured"
    return Evidence(measured, *trend.interval, "1", [] if 2 * ends >= len(table) else None)
