"""The rules of the leverage paper's claims: each measures one number on the study's runs.

``trend`` measures how leverage changes with the activation ratio or with compute over all curves.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.claims.base import Evidence
from moelaws.studies.leverage.derived.curves import DENSE, curve, curves, leverage_draws
from moelaws.studies.leverage.derived.series import SERIES, regression, slope
from moelaws.studies.leverage.laws.curve import efficiency_leverage

MAX_UNREACHED = 0.1  # fraction of draws without a leverage beyond which no interval is given
LEVEL = 0.9
ATTENTION = 0.35  # of the FLOPs: the middle of the paper's 30 to 40 %
POWER_OF_A = "leverage.activation:power"  # as the table of forms names it
NO_TREND = Evidence("Fewer than two architectures share two budgets.")


@dataclass(frozen=True)
class Trend:
    """Slope of ln EL on ln A, with a level for each budget, or on ln C, with one for each mixture.

    ``unreached`` is the fraction of draws in which the dense curve never comes down to a mixture's
    loss; the slope has no interval where it is too large.
    """

    slope: Estimate
    architectures: int
    budgets: int
    unreached: float


def trend(
    inputs: FittedInputs, over: Literal["A", "C"], fit: str = "curve_activation"
) -> Trend | None:
    """Returns the trend over the curves of ``fit``, at the budgets that all of them share.

    Its interval is from the draws of these curves and of the dense one. It is None where there are
    fewer than two architectures or two budgets to compare.
    """
    dense, mixtures = curve(inputs, DENSE), list(curves(inputs, fit))
    budgets = [set(moe.rows["C"].astype(float)) for moe in mixtures]
    C = np.array(sorted(set.intersection(*budgets))) if budgets else np.empty(0)
    A = np.array([1 - float(moe.rows["S"].iloc[0]) for moe in mixtures])
    if min(len(C), len(mixtures)) < 2:
        return None
    best = np.stack([np.log(efficiency_leverage(dense.params, m.params, C).EL) for m in mixtures])
    drawn = [np.log(leverage_draws(dense, moe, C)) for moe in mixtures]
    n = min(len(draws_BC) for draws_BC in drawn)
    draws_BAC = np.stack([draws_BC[:n] for draws_BC in drawn], axis=1)
    axis, x = (1, np.log(A)) if over == "A" else (2, np.log(C))
    slopes = _slopes(draws_BAC, x, axis)
    unreached = float(np.isnan(slopes).mean()) if n else 1.0
    low, high = np.nan, np.nan
    if unreached <= MAX_UNREACHED:
        low, high = percentile_interval(slopes, dense.level)
    slope = float(_slopes(best[None], x, axis)[0])
    runs = sum(len(curve.rows) for curve in (dense, *mixtures))
    return Trend(Estimate(slope, low, high, runs), len(mixtures), len(C), unreached)


def _slopes(ln_EL_BAC: Array, x: Array, axis: int) -> Array:
    """Returns the slope (B,) of ln EL (B, A, C) on ``x`` along ``axis``, levels along the other."""
    centred = x - x.mean()
    weights = centred / np.sum(centred**2)
    shape = (1, -1, 1) if axis == 1 else (1, 1, -1)
    per_level = np.sum(ln_EL_BAC * weights.reshape(shape), axis=axis)
    return np.asarray(per_level.mean(axis=1))


def sparser_is_better(inputs: FittedInputs) -> Evidence:
    """Returns the slope of ln EL on ln A, common to the budgets."""
    over_A = trend(inputs, "A")
    if over_A is None:
        return NO_TREND
    forms = inputs.derived("forms")
    R2 = float(forms.loc[forms["law"] == POWER_OF_A, "R2"].astype(float).median())
    fits = "" if math.isnan(R2) else f" A power of A alone explains EL with R2 = {R2:.3g} (median)."
    measured = (
        f"d ln EL / d ln A = {over_A.slope} over "
        f"{over_A.architectures} activation ratios and {over_A.budgets} budgets ({over_A.slope.n} "
        f"runs).{_unreached(over_A.unreached)}{fits}"
    )
    return Evidence(measured, *over_A.slope.interval)


def grows_with_compute(inputs: FittedInputs) -> Evidence:
    """Returns the slope of ln EL on ln C, the mean over activation ratios."""
    over_C = trend(inputs, "C")
    if over_C is None:
        return NO_TREND
    measured = (
        f"d ln EL / d ln C = {over_C.slope}, the mean of "
        f"{over_C.architectures} activation ratios over {over_C.budgets} budgets ({over_C.slope.n} "
        f"runs).{_unreached(over_C.unreached)} Published: 0.10 at A = 3.1 %."
    )
    return Evidence(measured, *over_C.slope.interval)


def best_granularity(inputs: Inputs) -> Evidence:
    """Returns the granularity of least loss."""
    return _least_loss(inputs, "granularity", "G", "log2 G", digits=3)


def few_shared_experts(inputs: Inputs) -> Evidence:
    """Returns the fraction of shared experts among the active ones that has the least loss."""
    return _least_loss(inputs, "shared", "E_s/(E_a+E_s)", "the share", digits=2)


def attention_share(inputs: Inputs) -> Evidence:
    """Returns how far the loss at 35 % attention is above the least, in percent."""
    series = SERIES["attention"]
    runs = series.compared(inputs)
    parabola = series.parabola(runs)
    if parabola is None:
        return Evidence(f"{len(runs)} runs determine no parabola in the share.")
    convention = "By the count of projections, scores and values over the whole context"
    span = f"{parabola.low:.2g} to {parabola.high:.2g}"
    if not parabola.low <= ATTENTION <= parabola.high:
        return Evidence(f"{convention}, the shares measured are {span}.")
    value, draws = parabola.excess(ATTENTION)
    excess = Estimate(100 * value, *percentile_interval(100 * draws, LEVEL), parabola.n)
    measured = (
        f"{convention}, the loss at 35 % is {excess} % above the least "
        f"of shares from {span} ({excess.n} runs, {parabola.budgets} budgets)."
    )
    return Evidence(measured, *excess.interval, "%")


def dense_layers_matter_little(inputs: Inputs) -> Evidence:
    """Returns the change of the loss, in percent, where the first layers are dense."""
    runs = SERIES["dense_layers"].compared(inputs)
    dense = np.asarray(runs["n_dense_layers"] > 0, np.float64)
    estimates = regression(dense[:, None], np.log(runs["L"].to_numpy(float)), runs["C"])
    if estimates is None:
        return Evidence("No budget has runs with and without dense layers.")
    value, draws = 100 * float(estimates.coefficients[0]), 100 * estimates.draws[:, 0]
    change = Estimate(value, *percentile_interval(draws, LEVEL), len(runs))
    measured = (
        f"Dense first layers change the loss by {change} % at equal compute "
        f"({change.n} runs, {runs['C'].nunique()} budgets)."
    )
    return Evidence(measured, *change.interval, "%")


def finer_is_less_balanced(inputs: Inputs) -> Evidence:
    """Returns the slope of ln CV of the experts' load on ln G."""
    runs = SERIES["granularity"].compared(inputs)
    runs = runs[runs["balance_cv"] > 0]
    ln_G, ln_CV = np.log(runs["G"].to_numpy(float)), np.log(runs["balance_cv"].to_numpy(float))
    elasticity = slope(ln_G, ln_CV, runs["C"], LEVEL)
    if math.isnan(elasticity.value):
        return Evidence(f"{len(runs)} runs determine no slope of ln CV on ln G.")
    measured = (
        f"d ln CV / d ln G = {elasticity} ({elasticity.n} runs, "
        f"{runs['C'].nunique()} budgets). Published, from Table 15: 0.96."
    )
    return Evidence(measured, *elasticity.interval)


def _least_loss(inputs: Inputs, sweep: str, name: str, scaled: str, digits: int) -> Evidence:
    """Returns where the loss over what a sweep varies is least, by a parabola in ``scaled``."""
    series = SERIES[sweep]
    runs = series.compared(inputs)
    parabola = series.parabola(runs)
    if parabola is None:
        return Evidence(f"{len(runs)} runs determine no parabola in {scaled}.")
    # An interval that reaches an end of the measured range has no end there.
    low, high = parabola.optimum_interval(LEVEL)
    low = -math.inf if low <= parabola.low + 1e-9 else low
    high = math.inf if high >= parabola.high - 1e-9 else high
    ends = parabola.low, parabola.high, float(parabola.optimum().x[0]), low, high
    least, largest, value, low, high = (2.0**t if series.log2 else t for t in ends)
    best = Estimate(value, max(low, 0.0), high, parabola.n)  # neither quantity is negative
    measured = (
        f"Least loss at {name} = {best} of {least:.{digits}g} to {largest:.{digits}g} measured "
        f"({best.n} runs, {parabola.budgets} budgets)."
    )
    return Evidence(measured, *best.interval)


def _unreached(fraction: float) -> str:
    return f" In {fraction:.0%} of the draws the dense curve never gets there." if fraction else ""
