"""What the leverage paper claims, and what the study's runs say of it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.leverage.pooled import Parabola, parabola, regression, slope
from moelaws.analysis.leverage.series import SERIES
from moelaws.analysis.leverage.trends import trend
from moelaws.analysis.minimum import percentile_interval
from moelaws.claims.base import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Finding,
    Verdict,
    by_interval,
)

LEVEL = 0.9
NEAR = 0.5  # % of the loss: App M's near-optimal
SHARE = 0.35  # the middle of the paper's 30 to 40 % of attention
LOW_SHARE = 1 / 3  # of shared experts, for "low"
# Nearer to 8 or 12 than to the paper's next granularities, 6 and 16, in log2 G.
BEST_G = (math.sqrt(6 * 8), math.sqrt(12 * 16))
MORE_BUDGETS = (
    "The dense counterpart trained to more compute, so that its curve need not be extrapolated, "
    "and two or three seeds a run: tier gpu."
)


def sparser_is_better(inputs: Inputs) -> Finding:
    """EL over the activation ratio."""
    found = trend(inputs, "A")
    if found is None:
        return _cannot("Fewer than two architectures share two budgets.", MORE_BUDGETS)
    R2 = _median_R2(inputs, "leverage.activation:power")
    fits = "" if math.isnan(R2) else f" A power of A alone explains EL with R2 = {R2:.3g} (median)."
    measured = (
        f"d ln EL / d ln A = {_number(found.slope, found.low, found.high)} over "
        f"{found.architectures} activation ratios and {found.budgets} budgets ({found.runs} runs)."
        f"{_lost(found.lost)}{fits}"
    )
    verdict = by_interval(-found.high, -found.low)
    return _finding(verdict, measured, found.slope, found.low, found.high, needed=MORE_BUDGETS)


def grows_with_compute(inputs: Inputs) -> Finding:
    """EL over compute."""
    found = trend(inputs, "C")
    if found is None:
        return _cannot("Fewer than two architectures share two budgets.", MORE_BUDGETS)
    measured = (
        f"d ln EL / d ln C = {_number(found.slope, found.low, found.high)}, the mean of "
        f"{found.architectures} activation ratios over {found.budgets} budgets ({found.runs} runs)."
        f"{_lost(found.lost)} Published: 0.10 at A = 3.1 %."
    )
    needed = "A wider range of budgets: three decades or more, as in tiers gpu and paper."
    verdict = by_interval(found.low, found.high)
    return _finding(verdict, measured, found.slope, found.low, found.high, needed=needed)


def best_granularity(inputs: Inputs) -> Finding:
    """The granularity of least loss."""
    runs, found = _pooled(inputs, "granularity")
    needed = "Granularities from 2 to 16 or more at each budget, as in tiers gpu and paper."
    if found is None:
        return _cannot(f"{len(runs)} runs determine no parabola in log2 G.", needed)
    best, (low, high) = _optimum(found, log2=True)
    verdict = _within(low, high, *BEST_G)
    measured = (
        f"Least loss at G = {_number(best, low, high)} of {2**found.low:.3g} to "
        f"{2**found.high:.3g} measured ({found.n} runs, {found.budgets} budgets)."
    )
    return _finding(verdict, measured, best, low, high, needed=needed)


def few_shared_experts(inputs: Inputs) -> Finding:
    """The share of shared experts of least loss."""
    runs, found = _pooled(inputs, "shared")
    needed = "Four or more shares a budget with two seeds, E_s from none to most: tier gpu."
    if found is None:
        return _cannot(f"{len(runs)} runs determine no parabola in the share.", needed)
    best, (low, high) = _optimum(found, log2=False)
    low = max(low, 0.0)  # no share is below none
    if low > 0 and high <= LOW_SHARE:
        verdict = SUPPORTED
    elif high <= 0 or low > LOW_SHARE:
        verdict = NOT_SUPPORTED
    else:
        verdict = CANNOT_TELL
    measured = (
        f"Least loss at E_s/(E_a+E_s) = {_number(best, low, high)} of {found.low:.2g} to "
        f"{found.high:.2g} measured ({found.n} runs, {found.budgets} budgets)."
    )
    return _finding(verdict, measured, best, low, high, needed=needed)


def attention_share(inputs: Inputs) -> Finding:
    """How far the loss at 35 % attention is above the least."""
    runs, found = _pooled(inputs, "attention")
    convention = "By the count of projections, scores and values over the whole context"
    needed = "Shapes of 20 to 60 % attention by this count at three budgets, two seeds each."
    if found is None:
        return _cannot(f"{len(runs)} runs determine no parabola in the share.", needed)
    if not found.low <= SHARE <= found.high:
        text = f"{convention}, the shares measured are {found.low:.2g} to {found.high:.2g}."
        return _cannot(text, needed)
    value, draws = found.excess(SHARE)
    low, high = percentile_interval(100 * draws, LEVEL)
    measured = (
        f"{convention}, the loss at 35 % is {_number(100 * value, low, high)} % above the least "
        f"of shares from {found.low:.2g} to {found.high:.2g} ({found.n} runs, {found.budgets} "
        "budgets)."
    )
    verdict = by_interval(-high, -low, -NEAR)
    return _finding(verdict, measured, 100 * value, low, high, "%", needed)


def dense_layers_matter_little(inputs: Inputs) -> Finding:
    """The loss with first layers dense beside that without."""
    runs = _varied(SERIES["dense_layers"].runs(inputs))
    needed = "Models of many layers (the paper's have 60) at five budgets: tier paper."
    dense = np.asarray(runs["n_dense_layers"] > 0, np.float64)
    L, C = runs["L"].to_numpy(float), runs["C"].to_numpy(float)
    found = regression(dense[:, None], np.log(L), C) if len(runs) else None
    if found is None:
        return _cannot("No budget has runs with and without dense layers.", needed)
    estimate, draws = found
    low, high = percentile_interval(100 * draws[:, 0], LEVEL)
    value = 100 * float(estimate[0])
    measured = (
        f"Dense first layers change the loss by {_number(value, low, high)} % at equal compute "
        f"({len(runs)} runs, {len(np.unique(C))} budgets)."
    )
    verdict = _within(low, high, -NEAR, NEAR)
    return _finding(verdict, measured, value, low, high, "%", needed)


def finer_is_less_balanced(inputs: Inputs) -> Finding:
    """Load balance over granularity."""
    runs = _varied(SERIES["granularity"].runs(inputs))
    runs = runs[runs["balance_cv"] > 0]
    needed = "More granularities and budgets, and a validation text of more tokens: tier gpu."
    G, CV = np.log(runs["G"].to_numpy(float)), np.log(runs["balance_cv"].to_numpy(float))
    value, low, high = slope(G, CV, runs["C"].to_numpy(float), LEVEL)
    if math.isnan(value):
        return _cannot(f"{len(runs)} runs determine no slope of ln CV on ln G.", needed)
    measured = (
        f"d ln CV / d ln G = {_number(value, low, high)} ({len(runs)} runs, "
        f"{runs['C'].nunique()} budgets). Published, from Table 15: 0.96."
    )
    return _finding(by_interval(low, high), measured, value, low, high, needed=needed)


def _pooled(inputs: Inputs, sweep: str) -> tuple[pd.DataFrame, Parabola | None]:
    series = SERIES[sweep]
    runs = _varied(series.runs(inputs))
    if not len(runs):
        return runs, None
    L, C = runs["L"].to_numpy(float), runs["C"].to_numpy(float)
    return runs, parabola(series.scale(runs["x"]), L, C)


def _varied(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs.groupby("C")["x"].transform("nunique") > 1]


def _optimum(found: Parabola, log2: bool) -> tuple[float, tuple[float, float]]:
    """The place of the least loss and its interval, endless where it reaches the range's end."""
    low, high = found.optimum_interval(LEVEL)
    low = -math.inf if low <= found.low + 1e-9 else low
    high = math.inf if high >= found.high - 1e-9 else high
    best = float(found.optimum().x[0])
    return (2.0**best, (2.0**low, 2.0**high)) if log2 else (best, (low, high))


def _within(low: float, high: float, least: float, most: float) -> Verdict:
    """Whether a number is between ``least`` and ``most``, by its interval; NaN decides nothing."""
    if low >= least and high <= most:
        return SUPPORTED
    return NOT_SUPPORTED if high < least or low > most else CANNOT_TELL


def _median_R2(inputs: Inputs, law: str) -> float:
    forms = inputs.derived("forms")
    return float(forms.loc[forms["law"] == law, "R2"].astype(float).median())


def _lost(share: float) -> str:
    return f" In {share:.0%} of the draws the dense curve never gets there." if share else ""


def _number(value: float, low: float, high: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return f"{value:.3g} (no interval)"
    if math.isinf(high):
        return f"{value:.3g} ({low:.3g} or more)" if low > 0 else f"{value:.3g} (anywhere)"
    return f"{value:.3g} ({low:.3g} to {high:.3g})"


def _cannot(measured: str, needed: str) -> Finding:
    return Finding(CANNOT_TELL, measured, needed=needed)


def _finding(
    verdict: Verdict, measured: str, value: float, low: float, high: float, unit: str = "",
    needed: str = "",
) -> Finding:  # fmt: skip
    shown, least, most = (end if math.isfinite(end) else None for end in (value, low, high))
    left = needed if verdict is CANNOT_TELL else ""
    return Finding(verdict, measured, shown, least, most, unit, left)


CLAIMS: dict[str, Claim] = {
    "sparser_is_better": Claim(
        "The fewer of its experts a model activates, the larger its efficiency leverage, as a "
        "power of the activation ratio.",
        "leverage, sec 4.2.1, Eq 1 and Fig 4a",
        "Supported when the interval of the slope of ln EL on ln A lies below 0, not supported "
        "when it lies above; the slope is common to the budgets that all activation ratios share, "
        "its interval from the draws of the loss curves.",
        sparser_is_better,
    ),
    "best_granularity": Claim(
        "At equal compute and activation ratio some granularity is best, 8 to 12 at every budget.",
        "leverage, sec 4.1, App F.2 and Fig 11",
        "Supported when the interval of the granularity of least loss lies within 6.9 to 13.9, "
        "which is nearer to 8 or 12 than to 6 or 16, not supported when it lies outside; by a "
        "parabola of ln L in log2 G with a level a budget. An interval that reaches the end of the "
        "granularities measured is endless there.",
        best_granularity,
    ),
    "grows_with_compute": Claim(
        "Efficiency leverage grows with the training compute.",
        "leverage, sec 4.2.1, Eq 3 and Fig 4c",
        "Supported when the interval of the slope of ln EL on ln C, the mean over activation "
        "ratios, lies above 0, not supported when below; its interval from the curves' draws.",
        grows_with_compute,
    ),
    "few_shared_experts": Claim(
        "A small share of shared experts, but not none, is best.",
        "leverage, sec 4.1, App F.3 and Fig 13",
        "Supported when the interval of the share of least loss lies above 0 and at most at 1/3, "
        "not supported when it is 0 or above 1/3; by a parabola of ln L in the share with a level "
        "a budget. An interval that reaches the largest share measured is endless there.",
        few_shared_experts,
    ),
    "attention_share": Claim(
        "Giving 30 to 40 % of the compute to attention is optimal or nearly so.",
        "leverage, App F.4 and Fig 14c; the count behind these shares is not stated",
        "Supported when the interval of the loss at 35 % over the least measured lies below 0.5 %, "
        "not supported when above; by a parabola of ln L in the share with a level a budget.",
        attention_share,
    ),
    "dense_layers_matter_little": Claim(
        "Making the first layers dense at equal compute hardly changes the loss.",
        "leverage, App F.4 and Fig 14a",
        "Supported when the interval of the change of the loss lies within 0.5 %, not supported "
        "when it lies outside; a level a budget, Student t.",
        dense_layers_matter_little,
    ),
    "finer_is_less_balanced": Claim(
        "The finer the experts, the less evenly they are used.",
        "leverage, App F.2 and Table 15",
        "Supported when the interval of the slope of ln CV of the experts' load on ln G lies above "
        "0, not supported when below; a level a budget, Student t.",
        finer_is_less_balanced,
    ),
}
