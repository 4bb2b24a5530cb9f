"""The rules of the leverage paper's claims: each measures one number on the study's runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.contrasts import seed_errors
from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.analysis.regression import LEVEL, of_draws, slope_weights
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import stretched, t_interval
from moelaws.studies.leverage.derived.curves import (
    COMPUTE,
    DENSE,
    curve,
    curves,
    leverage_draws,
    leverage_weights,
    open_interval,
)
from moelaws.studies.leverage.derived.points import VALIDATION, by_joint_law
from moelaws.studies.leverage.derived.series import SERIES, parabola, parabolas, regression, slope
from moelaws.studies.leverage.laws.curve import LAW, compute_for, efficiency_leverage, loss

MAX_UNREACHED = 0.1  # fraction of draws without a leverage beyond which no interval is given
ATTENTION = 0.35  # of the FLOPs: the middle of the paper's 30 to 40 %
MIN_ARCHITECTURES = 4  # among the points that validate Eq 4
PAPERS_PAIR = 6.9e21  # FLOP that MoE-mini trained with: at less, the paper expects less leverage


def sparser_is_better(inputs: Inputs) -> Evidence:
    """Returns by how much the loss falls as A halves, in percent, at both ends of the range."""
    runs = SERIES["activation"].compared(inputs)
    common = SERIES["activation"].parabola(runs)
    if common is None:
        return Evidence(f"{len(runs)} runs determine no parabola in log2 A.")
    own = parabolas(np.log2(runs["x"].to_numpy(float)), runs, runs["C"].to_numpy(float))
    slopes = np.hstack([100 * one.end_slopes() for one in own or [common]])
    # Either end of the range refutes, and so does any end at a budget: these hold together, too
    rising = 1 - (1 - LEVEL) / 3
    level = 1 - (1 - rising) / slopes.shape[1]
    ends = (Effect(math.nan, *percentile_interval(x[1:], level)) for x in slopes.T)
    rises = [own for own in ends if own.high < 0]
    both = 100 * common.end_slopes().T
    sparse, dense = known = [of_draws(x, common.n) for x in both]
    decides = [
        replace(one, high=of_draws(x, level=rising).high)
        for one, x in zip(known, both, strict=True)
    ]
    best = of_draws(np.exp2(common.optima()), common.n)
    return Evidence(
        f"As A halves, the loss falls by {sparse} % at A = {2**common.low:.2g} and by {dense} % "
        f"at A = {2**common.high:.2g}. It is least at A = {best} "
        f"({common.n} runs, {common.budgets} budgets).",
        sparse,
        "%",
        [*decides, *rises],
    )


def with_trunks(inputs: Inputs, estimate: Effect, run_ids: Sequence[str], moves: Array) -> Effect:
    """Returns an estimate that takes runs for independent with what runs of a trunk have in common.

    Where some share a trunk, its interval holds that by the spread between seeds, too. It has none
    where no run has a second seed, for then nothing says how far trunks err. ``moves`` (n,) say how
    the estimate moves with the losses of the runs.
    """
    errors = seed_errors(inputs, run_ids)
    if len(set(errors.trunks)) == len(set(run_ids)):
        return estimate
    low, high = t_interval(estimate.value, float(errors.seeds(moves)), errors.freedom, LEVEL)
    low, high = float(np.minimum(estimate.low, low)), float(np.maximum(estimate.high, high))
    return replace(estimate, low=low, high=high)


def grows_with_compute(inputs: FittedInputs) -> Evidence:
    """Returns the slope of ln EL on ln C at common budgets, the mean over activation ratios.

    It is the exponent of C in Eq 3. Its interval is that of the curves' draws, ``with_trunks``.
    """
    dense, mixtures = curve(inputs, DENSE), list(curves(inputs, "curve_activation"))
    budgets = [set(moe.rows["C"].astype(float)) for moe in mixtures]
    C = np.array(sorted(set.intersection(*budgets))) if budgets else np.empty(0)
    if min(len(C), len(mixtures)) < 2:
        return Evidence("Fewer than two architectures share two budgets.")
    weights = slope_weights(np.log(C))
    drawn = [leverage_draws(dense, moe, C) for moe in mixtures]
    n = min(map(len, drawn))
    slopes = np.array([np.log(EL_BC[:n]) @ weights for EL_BC in drawn])
    unreached = float(np.isnan(slopes.mean(axis=0)).mean())
    best = [efficiency_leverage(dense.params, moe.params, C).EL for moe in mixtures]
    slopes = np.column_stack([np.log(best) @ weights, slopes])  # of the curves, then of each draw
    if unreached > MAX_UNREACHED:
        slopes = slopes[:, :1]
    runs = sum(len(one.rows) for one in (dense, *mixtures))
    behind = [
        leverage_weights(dense, moe.rows, moe.influence(C), EL * C)
        for moe, EL in zip(mixtures, best, strict=True)
    ]
    ids = [run_id for own, _ in behind for run_id in own]
    moves = np.concatenate([weights @ own for _, own in behind])
    slope = with_trunks(inputs, of_draws(slopes.mean(axis=0), runs), ids, moves / len(mixtures))
    each = ", ".join(
        f"{with_trunks(inputs, of_draws(draws, len(moe.rows)), own, weights @ W)} "
        f"for E = {moe.rows['E'].iloc[0]:g}"
        for draws, moe, (own, W) in zip(slopes, mixtures, behind, strict=True)
    )
    missed = f" In {unreached:.0%} of the draws the dense curve never gets there."
    return Evidence(
        f"d ln EL / d ln C = {slope}, the mean of {len(mixtures)} activation ratios over {len(C)} "
        f"budgets ({runs} runs): {each}.{missed if unreached else ''} "
        "Published: 0.10 at A = 3.1 %.",
        slope,
    )


def large_leverage(inputs: FittedInputs) -> Evidence:
    """Returns leverage by Algorithm 1 over that by Eq 4, at the points that validate its fit.

    It is their geometric mean. The interval takes a draw of the fit with resampled architectures,
    whose points have their curve's error in common.
    """
    points = inputs.derived("points")
    points = points[points["EL"] >= VALIDATION]
    by_law, draws_BN = by_joint_law(inputs, points)
    ln_EL = np.log(points["EL"].to_numpy(float))
    architecture, names = pd.factorize(points["architecture"])
    K, B = len(names), len(draws_BN)
    if K < MIN_ARCHITECTURES or not B:
        return Evidence(f"{len(ln_EL)} points of {K} architectures have EL of 6 or more.")
    times_BN = np.random.default_rng(0).multinomial(K, [1 / K] * K, size=B)[:, architecture]
    drawn = np.sum(times_BN * (ln_EL - np.log(draws_BN)), axis=1) / times_BN.sum(axis=1)
    mean = float(np.mean(ln_EL - np.log(by_law)))
    ratio = Effect(mean, *percentile_interval(drawn, LEVEL), len(ln_EL)).map(np.exp)
    beyond = int((points["measured"] == 0).sum())
    return Evidence(
        f"EL by Algorithm 1 is {ratio} times that by Eq 4, at {ratio.n} points of {K} architectures"
        f", of which {beyond} are extrapolated. Published: RMSE .5275 over 24 points.",
        ratio,
    )


def least_loss(inputs: Inputs, sweep: str, name: str) -> Evidence:
    """Returns where the loss over what a sweep varies, called ``name``, is least."""
    series = SERIES[sweep]
    runs = series.compared(inputs)
    parabola = series.parabola(runs)
    if parabola is None:
        return Evidence(f"{len(runs)} runs determine no parabola in {name}.")
    # An interval that reaches an end of the measured range has no end there.
    lows, highs = parabola.optima_between()
    low, high = percentile_interval(lows, LEVEL)[0], percentile_interval(highs, LEVEL)[1]
    low = -math.inf if low <= parabola.low + 1e-9 else low
    high = math.inf if high >= parabola.high - 1e-9 else high
    ends = parabola.low, parabola.high, float(parabola.optima()[0]), low, high
    least, largest, value, low, high = (2.0**t if series.log2 else t for t in ends)
    best = Effect(value, max(low, 0.0), high, parabola.n)  # neither quantity is negative
    return Evidence(
        f"Least loss at {name} = {best} of {least:.3g} to {largest:.3g} measured "
        f"({best.n} runs, {parabola.budgets} budgets).",
        best,
    )


def best_moves_with_compute(inputs: Inputs, sweep: str, name: str, unit: str) -> Evidence:
    """Returns the change for a tenfold budget of what is best in a sweep.

    It is called ``name`` in the sentence, and changes by the ``unit``.
    """
    series = SERIES[sweep]
    runs = series.compared(inputs)
    C = np.log10(runs["C"].to_numpy(float))
    x = series.scaled(runs)
    # The vertex of ln L = level(C) + (a + b C) x + c x^2 moves by -b / 2c.
    fitted = None
    if len(set(C)) > 1:
        X = np.column_stack([x, x * (C - C.mean()), x**2])
        fitted = regression(X, np.log(runs["L"].to_numpy(float)), C, runs["trunk"])
    if fitted is None:
        return Evidence(f"{len(runs)} runs determine no parabola in {name} that budgets move.")
    _, tilt, curvature = fitted.T
    bowls = curvature > 0
    change = of_draws(np.where(bowls, -tilt / (2 * curvature), np.nan), len(runs))
    if np.mean(~bowls) > MAX_UNREACHED:
        change = Effect(change.value, n=change.n)
    return Evidence(
        f"The best {name} changes by {change} {unit}for a tenfold budget ({change.n} runs, "
        f"{len(set(C))} budgets). Parabolas of all budgets have the same curvature.",
        change,
    )


def weak_balance_favours_coarse(inputs: Inputs) -> Evidence:
    """Returns how many times the best granularity halves under a tenth of the balance loss."""
    usual = SERIES["granularity"].at_best_size(inputs)
    weak = SERIES["granularity_weak"].at_best_size(inputs)
    runs = pd.concat([usual.assign(weak=0.0), weak.assign(weak=1.0)])
    runs = runs[runs["C"].isin(set(usual["C"]) & set(weak["C"]))]
    own = parabolas(np.log2(runs["G"].to_numpy(float)), runs, runs["weak"].to_numpy(float))
    if not own:
        return Evidence(f"{len(runs)} runs determine no two parabolas in log2 G.")
    before, after = (one.optima() for one in own)
    halvings = of_draws(before - after, len(runs))
    return Evidence(
        f"The best granularity is {2 ** before[0]:.3g} with the usual balance loss and "
        f"{2 ** after[0]:.3g} with a tenth of it: it halves {halvings} times ({halvings.n} runs, "
        f"{own[0].budgets} budgets).",
        halvings,
    )


def heads_hardly_matter(inputs: Inputs) -> Evidence:
    """Returns the larger excess loss of half and twice the best number of heads, in percent."""
    runs = SERIES["heads"].compared(inputs)
    widths = np.log2((runs["d_model"] / runs["n_heads"]).to_numpy(float))
    common = parabola(widths, runs)
    if common is None:
        return Evidence(f"{len(runs)} runs determine no parabola in the width of a head.")
    near = (np.clip(common.optima() + step, common.low, common.high) for step in (-1, 1))
    excess = of_draws(100 * np.maximum(*map(common.excess, near)), common.n)
    return Evidence(
        f"Half or twice the best number of heads, which makes heads {2 ** common.optima()[0]:.3g} "
        f"wide, costs up to {excess} % of the loss ({excess.n} runs, {common.budgets} sizes).",
        excess,
        "%",
    )


def matches_seven_times_the_compute(inputs: FittedInputs, sweep: str) -> Evidence:
    """Returns the leverage of the mixture of a pair over the dense model trained beside it.

    The dense counterpart's curve, scaled to the dense model's loss, gives the compute for the
    mixture's. Its interval holds the curve's draws and the scatter of both runs about a curve.
    """
    pair, baseline = inputs.sweep(sweep), curve(inputs, DENSE)
    sparse = pair["S"] > 0
    if sparse.nunique() < 2:
        return Evidence("The two models were not both trained.")
    means = pair[["L", COMPUTE]].astype(float).apply(np.log).groupby(sparse).mean()
    (L_dense, C_dense), (L_moe, C_moe) = np.exp(means.to_numpy())

    def leverage(curve: Mapping[str, ArrayLike], scatter: ArrayLike) -> Array:
        scale = loss(curve, C_dense) / L_dense
        return compute_for(curve, scale * L_moe * np.exp(scatter), unit=C_moe)

    value, noise = float(leverage(baseline.params, 0.0)), math.sqrt(2) * baseline.noise()
    freedom = len(baseline.rows) - len(LAW.names)
    scatter = np.random.default_rng(0).standard_t(freedom, (len(baseline.draws), 1))
    draws = leverage(baseline.drawn_params(), noise * scatter / baseline.stretch)
    ends = open_interval(stretched(draws, value, baseline.stretch), LEVEL)
    low, high = (float(end[0]) for end in ends)
    if C_moe < PAPERS_PAIR:
        high = math.inf
    result = Effect(value, low, high)
    return Evidence(
        f"The mixture's loss at {C_moe:.2g} FLOPs is {L_moe:.3f} nats and the dense model's at "
        f"{C_dense / C_moe:.2g} times these is {L_dense:.3f}: a leverage of {result}.",
        result,
    )


def attention_share(inputs: Inputs) -> Evidence:
    """Returns how far the loss at 35 % attention is above the least, in percent."""
    series = SERIES["attention"]
    runs = series.compared(inputs)
    parabola = series.parabola(runs)
    if parabola is None:
        return Evidence(f"{len(runs)} runs determine no parabola in the share.")
    convention = "By the count of all forward FLOPs, logits included (Eq 10 to 12)"
    span = f"{parabola.low:.2g} to {parabola.high:.2g}"
    if not parabola.low <= ATTENTION <= parabola.high:
        return Evidence(f"{convention}, the shares measured are {span}.")
    # Each draw's excess over its own least would be too large, since noise moves that least, too.
    # Over one share it is not: the excess is below a number where it is so over every share.
    shares = np.append(parabola.optima()[0], np.linspace(parabola.low, parabola.high, 41))
    above = 100 * (parabola.at(ATTENTION) - parabola.at(shares[:, None]))
    each = [of_draws(one, parabola.n) for one in above]
    low, high = max(each[0].low, 0.0), max(one.high for one in each)
    excess = replace(each[0], low=low, high=high)
    return Evidence(
        f"{convention}, the loss at 35 % is {excess} % above the least "
        f"of shares from {span} ({excess.n} runs, {parabola.budgets} budgets).",
        excess,
        "%",
    )


def dense_layers_matter_little(inputs: Inputs) -> Evidence:
    """Returns the change of the loss, in percent, where the first layers are dense."""
    runs = SERIES["dense_layers"].compared(inputs)
    dense = np.asarray(runs["n_dense_layers"] > 0, np.float64)
    change = slope(dense, np.log(runs["L"].to_numpy(float)), runs) * 100
    if math.isnan(change.value):
        return Evidence("No budget has runs with and without dense layers.")
    return Evidence(
        f"Dense first layers change the loss by {change} % at equal compute "
        f"({change.n} runs, {runs['C'].nunique()} budgets).",
        change,
        "%",
    )


def finer_is_less_balanced(inputs: Inputs) -> Evidence:
    """Returns the slope of ln CV of the experts' load on ln G."""
    runs = SERIES["granularity"].compared(inputs)
    runs = runs[runs["balance_cv"] > 0]
    ln_G, ln_CV = np.log(runs["G"].to_numpy(float)), np.log(runs["balance_cv"].to_numpy(float))
    elasticity = slope(ln_G, ln_CV, runs)
    if math.isnan(elasticity.value):
        return Evidence(f"{len(runs)} runs determine no slope of ln CV on ln G.")
    return Evidence(
        f"d ln CV / d ln G = {elasticity} ({elasticity.n} runs, "
        f"{runs['C'].nunique()} budgets). Published, from Table 15: 0.96.",
        elasticity,
    )
