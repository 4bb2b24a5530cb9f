"""Claims on the best learning rate, batch and model size (leverage, sec 2.2, 2.3, App E)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from moelaws.analysis.hyperparameters.noise import LIMIT
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
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
WORDS = {"lr": "learning rate", "batch_tokens": "batch"}
MORE = (
    "the paper tier's search, whose budgets span a factor of 300; at this tier, a second seed for "
    "every run, and values tried to either side of every best run"
)


def _mixtures(inputs: Inputs) -> pd.DataFrame:
    """The runs of the mixtures' search that the laws rest on."""
    search = inputs.derived("near_optimal")
    return search[(search["kind"] == "moe") & (search["C"] <= LIMIT)]


def _drawn(draws: pd.DataFrame, kind: str, setting: str, column: str) -> tuple[float, Array]:
    """A column of the measured law (NaN without one), and of its draws (B,)."""
    own = draws[(draws["kind"] == kind) & (draws["setting"] == setting)]
    measured, noisy = own[own["draw"] == 0][column], own[own["draw"] > 0][column]
    value = float(measured.iloc[0]) if len(measured) else float("nan")
    return value, noisy.to_numpy(float)


def _trend(setting: str, sign: int) -> Callable[[Inputs], Finding]:
    """Whether the exponent of a mixture's law has the ``sign``."""

    def judge(inputs: Inputs) -> Finding:
        value, drawn = _drawn(inputs.derived("noise"), "moe", setting, "exponent")
        if not np.isfinite(value):
            return Finding(
                CANNOT_TELL, "mixtures were searched at fewer than two budgets", needed=MORE
            )
        low, high = percentile_interval(drawn, LEVEL)
        near = _mixtures(inputs)
        text = (
            f"{WORDS[setting]} ~ C^{value:.3f} {_interval(low, high)}, from "
            f"{int(near['near'].sum())} near-optimal of {len(near)} runs at {near['C'].nunique()} "
            f"budgets from {near['C'].min():.2g} to {near['C'].max():.2g} FLOPs"
        )
        verdict = by_interval(*sorted((sign * low, sign * high)))
        needed = MORE if verdict is CANNOT_TELL else ""
        return Finding(verdict, text, value, low, high, needed=needed)

    return judge


def moe_against_dense(inputs: Inputs) -> Finding:
    """Batch larger and learning rate lower for mixtures than for dense models, at the largest C."""
    draws = inputs.derived("noise")
    found: dict[str, tuple[float, float, float]] = {}
    for setting in WORDS:
        moe, moe_drawn = _drawn(draws, "moe", setting, "at_high")
        dense, dense_drawn = _drawn(draws, "dense", setting, "at_high")
        n = min(len(moe_drawn), len(dense_drawn))
        ends = percentile_interval(moe_drawn[:n] / dense_drawn[:n], LEVEL)
        found[setting] = (moe / dense, *ends)
    batch, lr = found["batch_tokens"], found["lr"]
    if not np.isfinite([batch[0], lr[0]]).all():
        measured = "mixtures and dense models were not both searched at two budgets"
        return Finding(CANNOT_TELL, measured, needed=MORE)
    verdicts = (by_interval(*batch[1:], 1.0), by_interval(-lr[2], -lr[1], -1.0))
    C = draws["C_high"].max()
    text = (
        f"at C = {C:.2g} FLOPs mixtures' batch is {batch[0]:.2f} {_interval(*batch[1:])} of dense "
        f"models', their learning rate {lr[0]:.2f} {_interval(*lr[1:])}"
    )
    verdict: Verdict = CANNOT_TELL
    if all(v is SUPPORTED for v in verdicts):
        verdict = SUPPORTED
    elif NOT_SUPPORTED in verdicts:
        verdict = NOT_SUPPORTED
    needed = (
        "the paper tier, whose budgets end a thousand times higher: it says so of large compute"
        if verdict is CANNOT_TELL
        else ""
    )
    return Finding(verdict, text, *batch, needed=needed)


def across_activation(inputs: Inputs) -> Finding:
    """Do the laws, fitted to lower budgets, fall among the near-optimal runs of other ratios?"""
    search = inputs.derived("near_optimal")
    search = search[search["kind"] == "moe"]
    top = search[search["C"] == search["C"].max()]
    draws = inputs.derived("noise")
    if top["A"].nunique() < 2:
        measured = "one activation ratio was searched"
        return Finding(CANNOT_TELL, measured, needed="the paper tier: three ratios at 3e20 FLOPs")
    C = float(top["C"].iloc[0])
    inside = []
    for _, rows in top.groupby("A"):
        near = rows[rows["near"] == 1]
        covered = True
        for setting in WORDS:
            coefficient, _ = _drawn(draws, "moe", setting, "coefficient")
            exponent, _ = _drawn(draws, "moe", setting, "exponent")
            predicted = coefficient * C**exponent
            # Half a step of the search beyond the near-optimal runs.
            step = np.median(np.diff(np.log(np.sort(rows[setting].astype(float).unique()))))
            low, high = near[setting].min(), near[setting].max()
            covered &= bool(low * np.exp(-step / 2) <= predicted <= high * np.exp(step / 2))
        inside.append(covered)
    ratios = ", ".join(f"{A:.3f}" for A in sorted(top["A"].unique()))
    text = f"among the near-optimal runs at {sum(inside)} of {len(inside)} ratios (A = {ratios})"
    return Finding(SUPPORTED if all(inside) else NOT_SUPPORTED, text, float(np.mean(inside)))


def _exponents(inputs: Inputs, fits: tuple[str, ...]) -> dict[str, tuple[float, float, float]]:
    found = {}
    for fit in fits:
        estimate = inputs.fit(fit).parts[0].params["exponent"]
        low, high = (float("nan") if end is None else end for end in (estimate.low, estimate.high))
        found[fit] = (estimate.estimate, low, high)
    return found


def half(inputs: Inputs) -> Finding:
    """Both exponents of the best model scale within .4 and .6."""
    found = _exponents(inputs, ("M_parabola", "M_dense_parabola"))
    text = ", ".join(
        f"{'mixtures' if fit == 'M_parabola' else 'dense'} M ~ C^{value:.3f} {_interval(low, high)}"
        for fit, (value, low, high) in found.items()
    )
    text += f", from {inputs.fit('M_parabola').parts[0].n} budgets"
    inside = [low >= 0.4 and high <= 0.6 for _, low, high in found.values()]
    outside = [high < 0.4 or low > 0.6 for _, low, high in found.values()]
    verdict = SUPPORTED if all(inside) else NOT_SUPPORTED if any(outside) else CANNOT_TELL
    bounds = int((~inputs.derived("best_sizes")["inside"]).sum())
    if bounds:
        text += f"; {bounds} of their minima are bounds, at an end of the sizes tried"
        verdict = CANNOT_TELL
    needed = "more budgets, and sizes to either side of every minimum: best the paper tier's seven"
    value = found["M_parabola"]
    return Finding(verdict, text, *value, needed=needed if verdict is CANNOT_TELL else "")


def smaller_model(inputs: Inputs) -> Finding:
    """The mean over budgets of ln (M of mixtures / M of dense models), by parabolas."""
    best = inputs.derived("best_sizes")
    M = best[best["inside"]].pivot_table(index="C", columns="kind", values="M_star")
    both = M.dropna() if {"moe", "dense"} <= set(M.columns) else M.iloc[:0]
    n, budgets = len(both), best["C"].nunique()
    needed = "sizes to either side of the minimum, of both kinds of models, at more budgets"
    if n < 3:
        measured = f"both minima lie inside the sizes tried at {n} of {budgets} budgets"
        return Finding(CANNOT_TELL, measured, needed=needed)
    logs = np.log(both["moe"].to_numpy(float)) - np.log(both["dense"].to_numpy(float))
    low, high = (float(np.exp(end)) for end in mean_interval(logs))
    ratio = float(np.exp(logs.mean()))
    text = (
        f"the best mixture's M is {ratio:.2f} {_interval(low, high)} of the best dense model's, at "
        f"{n} of {budgets} budgets"
    )
    verdict = by_interval(-high, -low, -1.0)
    if best["C"].max() < CROSSING:
        verdict, needed = CANNOT_TELL, "budgets above 1.8e14 FLOPs: the gpu tier's"
        text += "; below 1.8e14 FLOPs Table 5 itself makes the mixture's the larger"
    return Finding(verdict, text, ratio, low, high, needed=needed if verdict is CANNOT_TELL else "")


# FLOPs; where the two lines of Table 5 cross, C = (.1915 / .0655)^(1 / (.5422 - .5095)).
CROSSING = 1.77e14


def mean_interval(values: Array, draws: int = 100_000) -> tuple[float, float]:
    """Student's 90 % interval of the mean of ``values`` (n,), its quantiles by drawing."""
    rng, freedom = np.random.default_rng(3), len(values) - 1
    t = rng.standard_normal(draws) / np.sqrt(rng.chisquare(freedom, draws) / freedom)
    t = np.concatenate([t, -t])
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return percentile_interval(values.mean() + error * t, LEVEL)


def _interval(low: float, high: float) -> str:
    return f"[{low:.3g}, {high:.3g}]" if np.isfinite([low, high]).all() else "(no interval)"


_NOISE = (
    "90 % of the laws that come of adding the spread between seeds to every loss, selecting the "
    "near-optimal runs anew and moving them within a step of the values tried"
)
_ENDS = "The ends of the search can hide how steep a trend is, not its direction"

CLAIMS = {
    "lr_falls": Claim(
        "The best learning rate of a mixture falls with training compute, as a power law.",
        "leverage, App E.1, Eq 5: exponent -0.1529",
        f"Supported where the exponent's interval ({_NOISE}) lies below 0, not supported where it "
        f"lies above. {_ENDS}.",
        _trend("lr", -1),
    ),
    "batch_rises": Claim(
        "The best batch of a mixture rises with training compute, as a power law.",
        "leverage, App E.1, Eq 5: exponent 0.3644",
        f"Supported where the exponent's interval ({_NOISE}) lies above 0, not supported where it "
        f"lies below. {_ENDS}.",
        _trend("batch_tokens", 1),
    ),
    "moe_batch_larger": Claim(
        "At large compute mixtures want larger batches and lower learning rates than dense models.",
        "leverage, sec 2.2, App E.1, Figure 7",
        "Supported where at the largest budget searched the laws' ratio of batches lies above 1 "
        f"and that of learning rates below 1, each with its interval ({_NOISE}); not supported "
        "where either interval lies on the other side.",
        moe_against_dense,
    ),
    "across_activation": Claim(
        "The laws hold for other activation ratios than the one that they were fitted at.",
        "leverage, App E.1, Figure 8",
        "Supported where at the largest budget learning rate and batch of the law lie within half "
        "a step of the near-optimal runs of every ratio searched; it needs two ratios at least.",
        across_activation,
    ),
    "equal_split": Claim(
        "Compute is best split about equally: the best model scale of mixtures and of dense models "
        "grows about as the square root of compute.",
        "leverage, App E.2, Table 5: exponents 0.5095 and 0.5422",
        "Supported where both exponents' 90 % intervals (Student t, minima of parabolas) lie "
        "within 0.4 and 0.6; not supported where one lies wholly outside; cannot tell where a "
        "minimum is a bound.",
        half,
    ),
    "smaller_model": Claim(
        "At a given budget above 1.8e14 FLOPs the best mixture has fewer FLOPs per token, and "
        "trains on more tokens, than the best dense model.",
        "leverage, sec 2.3, App E.2, Table 5",
        "Over the budgets whose minima lie inside the sizes tried, three at least, the mean ratio "
        "of the best M by parabolas and its 90 % interval (Student t): supported where it lies "
        "below 1, not supported where it lies above. Below 1.8e14 FLOPs nothing is claimed.",
        smaller_model,
    ),
}
