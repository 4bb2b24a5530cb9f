"""Expectations of the sectional paper on trained models, measured on the arms (sec 5.3).

All arms of a size train on equally many tokens at the same FLOPs a token. Intervals are over seeds.
Where a claim compares m numbers, their intervals hold together: each has a level of 1 - 0.1 / m
(Bonferroni). They do not allow for the choice of the best number of slices. Intervals of times are
over rounds, and each holds by itself.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, slope_weights
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import (
    ARMS,
    BALANCED,
    CHUNKS,
    CONVENTIONAL,
    DENSE,
    DIVIDED,
    LEARNED,
    SHALLOW,
    SIZE,
    SLICES,
    WIDTHS,
    middle,
)
from moelaws.studies.sectional.derived.arms import TARGET
from moelaws.studies.sectional.derived.speeds import of_widths

Interval = tuple[float, float]
Shown = tuple[float, Interval]
Size = tuple[Any, ...]  # width, sequence length and tokens
Key = tuple[str, str]  # what a claim needs, such as an arm, and the words for one number of it
SECTIONS = (*SLICES, *CHUNKS)
OTHERS = (DENSE, SHALLOW, *CONVENTIONAL)
UNKNOWN: Interval = (math.nan, math.nan)


class Estimate(NamedTuple):
    """A number, its standard error over seeds, and the error's degrees of freedom."""

    value: float
    se: float
    freedom: int


def fewer_flops(inputs: Inputs) -> Evidence:
    """Returns the slope of the loss over log2 E at equal FLOPs, of each reading and size."""
    cells = _slopes(inputs.derived("arms"))
    slopes = {(arm, f"{ARMS[arm]}{_at(size)}"): contrast(x, w) for size, arm, x, w in cells}
    unit = "nats/token for each doubling of E at equal FLOPs a token"
    return _of(slopes, SLICES, unit, "no two numbers of slices completed at one size")


def better_loss(inputs: Inputs) -> Evidence:
    """Returns the best slices' loss less that of the best dense or conventional model."""
    differences = {}
    for size, rows in inputs.derived("arms").groupby(SIZE):
        others = rows[rows["arm"].isin(OTHERS)]
        for arm in SLICES:
            own = rows[rows["arm"] == arm]
            if len(own) and {DENSE, *CONVENTIONAL} <= set(others["arm"]):
                best, other = _best(own), _best(others)
                pair = pd.DataFrame([best, other])
                name = f"{ARMS[arm]}, E = {best['E']}, against {ARMS[other['arm']]}{_at(size)}"
                differences[arm, name] = contrast(pair, np.array([1.0, -1.0]))
    nothing = "the dense model, both mixtures or the slices did not complete"
    return _of(differences, SLICES, "nats/token", nothing)


def chunks_keep_the_loss(inputs: Inputs) -> Evidence:
    """Returns the loss of each way to route chunks, less that of the top-2 mixture."""
    differences = {}
    for size, rows in inputs.derived("arms").groupby(SIZE):
        cells = rows.set_index("arm")
        for arm in CHUNKS:
            if {arm, BALANCED} <= set(cells.index):
                pair = cells.loc[[arm, BALANCED]]
                differences[arm, f"{ARMS[arm]}{_at(size)}"] = contrast(pair, np.array([1.0, -1.0]))
    nothing = "neither way to route chunks completed beside the top-2 mixture"
    return _of(differences, CHUNKS, "nats/token", nothing)


def balanced(inputs: Inputs) -> Evidence:
    """Returns the variation of tokens per expert without a balance loss over that with one."""
    load = inputs.derived("load")
    load = load[load["held_out"] & load["arm"].isin((LEARNED, BALANCED))]
    cv = load.groupby([*SIZE[:2], "seed", "arm"])["cv"].mean().unstack("arm")
    if not {LEARNED, BALANCED} <= set(cv.columns) or not len(cv := cv[(cv > 0).all(axis=1)]):
        return Evidence("no seed completed both with and without a balance loss")
    logs = pd.concat({LEARNED: (cv[LEARNED] / cv[BALANCED]).map(math.log)}, names=["arm"])
    ratios = _pooled(logs, f" over {ARMS[BALANCED]}")
    evidence = _shown(_joint(ratios, True), (LEARNED,), "of the variation with a balance loss")
    words = (
        f"the tokens per expert vary by {cv[LEARNED].mean():.2f} of their mean where a router of "
        f"chunks has no balance loss, and by {cv[BALANCED].mean():.2f} in the top-2 mixture with "
        f"one (held-out text; {len(cv)} runs of each). The ratios are: {evidence.measured}. "
        "Slices, and chunks by their place, are balanced by construction"
    )
    return replace(evidence, measured=words)


def cost_has_an_optimum(inputs: Inputs) -> Evidence:
    """Returns the time of a step with the best number of slices over that with one."""
    table, words, intervals, found = inputs.derived("speeds"), [], [], []
    for arm in SLICES:
        rows = table[(table["sweep"] == WIDTHS[arm]) & (table["E"] > 1)].sort_values("E")
        if not len(rows):
            intervals.append(UNKNOWN)
            continue
        best = rows.iloc[int(np.argmin(rows["ratio"]))]
        ends = float(best["low"]), float(best["high"])
        intervals.append(ends)
        after = rows[rows["E"] > best["E"]]
        rises = bool((after["low"] > best["high"]).any())
        if not rises:  # the optimum may lie at more slices, or the time may stay where it is
            intervals.append(UNKNOWN)
        tried = ", ".join(map(str, rows["E"]))
        words.append(
            f"{ARMS[arm]}, best at E = {best['E']} of {tried}: {best['ratio']:.3f} {_ends(*ends)}, "
            f"and it {'rises' if rises else 'does not clearly rise'} beyond"
        )
        found.append(best)
    if not found:
        return Evidence("the time of a step was not measured at equal widths")
    counted = of_widths(inputs.derived("counted"), table)
    last = counted[counted["E"] == counted["E"].max()].iloc[0]
    measured = (
        f"{'; '.join(words)}. Counted FLOPs of {last['E']} slices are {last['all_ratio']:.2f} and "
        f"{last['chunks_ratio']:.2f} of those of one"
    )
    worst = max(found, key=lambda row: float(row["ratio"]))
    value, low, high = (float(worst[name]) for name in ("ratio", "low", "high"))
    return Evidence(measured, value, low, high, "of the time with one slice", intervals)


def generates_faster(inputs: Inputs) -> Evidence:
    """Returns the time to generate a token by each way to make sections over the mixture's.

    Slices have the middle one of the numbers tried, so that none is chosen by its time.
    """
    table = inputs.derived("speeds").dropna(subset=["latency_ratio"])
    shown: dict[Key, Shown] = {}
    for (arm, *size), rows in table.groupby(["sweep", *SIZE[:2]]):
        if arm in SECTIONS:
            E = np.unique(rows["E"])
            row = rows[rows["E"] == E[len(E) // 2]].iloc[0]
            words = f"{ARMS[arm]} (d = {size[0]}, {size[1]} positions)"
            shown[arm, words] = row["latency_ratio"], (row["latency_low"], row["latency_high"])
    if not shown:
        return Evidence("the time to generate a token was not measured beside the top-2 mixture")
    return _shown(shown, SECTIONS, "of the top-2 mixture's time for a token")


def specialise(inputs: Inputs) -> Evidence:
    """Returns how the cosine of experts' matched units changes from the first kept step on."""
    table = middle(inputs.derived("similarity"))
    table = table[table["arm"].isin((*CHUNKS, *DIVIDED))]
    cells = ["arm", *SIZE[:2]]
    runs = table.groupby([*cells, "run_id", "step"])["matched"].mean().groupby([*cells, "run_id"])
    change = _pooled((runs.last() - runs.first())[runs.size() > 1])
    nothing = "no run keeps weights at steps on the way"
    return _of(change, (*CHUNKS, *DIVIDED), "of the cosine of matched units", nothing)


def longer_sequences(inputs: Inputs) -> Evidence:
    """Returns how much less than the dense model's the loss rises beyond the trained context.

    Slices have the middle one of the numbers tried. Both models of a difference have one seed.
    """
    table = middle(inputs.derived("longer"), "E")
    rises = table.pivot_table("rise", [*SIZE[:2], "seed"], "arm")
    if DENSE not in rises:
        return Evidence("no dense model was evaluated in longer sequences")
    more = pd.Series(rises.sub(rises[DENSE], axis=0).stack())
    more = more[more.index.isin(SECTIONS, level="arm")]
    nothing = "no sections were evaluated in longer sequences beside a dense model"
    return _of(_pooled(more), SECTIONS, "nats/token more than in the dense model", nothing)


def larger_carry_more(inputs: Inputs) -> Evidence:
    """Returns how much more the loss falls with log2 E in wider models and longer sequences."""
    slopes = [(arm, size, contrast(x, w)) for size, arm, x, w in _slopes(inputs.derived("arms"))]
    changes = {}
    for (arm, small, one), (other, large, two) in permutations(slopes, 2):
        axis, words = _one_larger(small, large)
        if axis and arm == other:
            changes[f"{arm}, {axis}", f"{ARMS[arm]}, {words}"] = Estimate(
                two.value - one.value, math.hypot(one.se, two.se), min(one.freedom, two.freedom)
            )
    expected = [f"{arm}, {axis}" for arm in SLICES for axis in SIZE[:2]]
    nothing = "all runs with several numbers of slices have one width and one length"
    return _of(changes, expected, "nats/token for each doubling of E", nothing)


def faster(inputs: Inputs) -> Evidence:
    """Returns the steps of the best slices to a target loss over the faster dense model's."""
    ratios: dict[Key, Estimate] = {}
    never: dict[Key, Shown] = {}
    for size, rows in inputs.derived("arms").groupby(SIZE):
        dense = rows[rows["arm"] == DENSE].assign(steps_ratio=1.0)
        bases = pd.concat([dense, rows[rows["arm"] == SHALLOW]])
        for arm in SLICES:
            own = rows[(rows["arm"] == arm) & rows["steps_ratio"].notna()]
            if not len(dense) or not len(own):
                continue
            base = _best(bases, "steps_ratio")
            best = _best(own)
            name = f"{ARMS[arm]}, E = {best['E']}{_at(size)}"
            if math.isfinite(best["steps_ratio"]):
                per_seed = math.sqrt(1 / best["n_seeds"] + 1 / base["n_seeds"])
                paired = 1.0 if best["seeds"] == base["seeds"] else math.nan
                ratios[arm, name] = Estimate(
                    math.log(best["steps_ratio"] / base["steps_ratio"]),
                    float(best["steps_sd"] * per_seed * paired),
                    int(best["steps_freedom"]),
                )
            else:  # some seeds would need more steps than they trained
                known = best["reached"] == 0 and best["n_seeds"] > 1
                words = f"{name} ({best['reached']} of {best['n_seeds']} seeds came to it)"
                least = 1 / TARGET / float(base["steps_ratio"])
                never[arm, words] = math.inf, (least, math.inf) if known else UNKNOWN
    if not ratios and not never:
        return Evidence("no slices completed beside a dense model")
    unit = "of the steps of the faster dense model"
    return _shown(never | _joint(ratios, True), SLICES, unit)


def contrast(rows: pd.DataFrame, weights: Array) -> Estimate:
    """Returns the sum of the losses of ``rows`` with ``weights``, which sum to zero.

    Its error is unknown where some rows lack a seed of the others: the effect that a seed has on
    all arms would not cancel.
    """
    per_seed = np.sqrt(np.sum(np.square(weights) / rows["n_seeds"].to_numpy(float)))
    paired = 1.0 if rows["seeds"].nunique() == 1 else math.nan
    return Estimate(
        float(weights @ rows["L"].to_numpy(float)),
        float(rows["seed_sd"].iloc[0] * per_seed * paired),
        int(rows["freedom"].iloc[0]),
    )


def _pooled(values: pd.Series, over: str = "") -> dict[Key, Estimate]:
    """Returns each arm's and size's mean, with an error by the spread within these, pooled."""
    cells: Any = values.groupby(["arm", *SIZE[:2]])
    freedom = len(values) - cells.ngroups
    squares = float(np.square(values - cells.transform("mean")).sum())
    sd = math.sqrt(squares / freedom) if freedom else math.nan
    return {
        (arm, f"{ARMS[arm]}{over} (d = {d}, {n} positions)"): Estimate(
            float(own.mean()), sd / math.sqrt(len(own)), freedom
        )
        for (arm, d, n), own in cells
    }


def _slopes(table: pd.DataFrame) -> Iterator[tuple[Size, str, pd.DataFrame, Array]]:
    """Yields each size and reading with its rows and the weights of L in the slope over log2 E."""
    for size, rows in table.groupby(SIZE):
        for arm in SLICES:
            own = rows[rows["arm"] == arm]
            if own["E"].nunique() > 1:
                yield size, arm, own, slope_weights(np.log2(own["E"].to_numpy(float)))


def _best(rows: pd.DataFrame, by: str = "L") -> pd.Series:
    return rows.iloc[int(np.argmin(rows[by]))]


def _one_larger(small: Size, large: Size) -> tuple[str, str]:
    """Returns which of width and context is larger, and words for it; "" where both differ.

    Tokens may differ a little, as they are whole steps, which are larger with longer sequences.
    """
    (d, n, D), (wider, longer, more) = small, large
    if not math.isclose(D, more, rel_tol=0.01):
        return "", ""
    if d < wider and n == longer:
        return SIZE[0], f"d from {d} to {wider} ({n} positions)"
    if d == wider and n < longer:
        return SIZE[1], f"positions from {n} to {longer} (d = {d})"
    return "", ""


def _at(size: Size) -> str:
    return f" (d = {size[0]}, {size[1]} positions, {size[2] / 1e6:.3g}M tokens)"


def _ends(low: float, high: float) -> str:
    return "(no interval)" if math.isnan(low) else f"[{low:.3f}, {high:.3f}]"


def _of(
    estimates: Mapping[Key, Estimate], expected: Iterable[str], unit: str, nothing: str
) -> Evidence:
    """Returns the evidence of several numbers, all of which decide; ``nothing`` without any."""
    return _shown(_joint(estimates), expected, unit) if estimates else Evidence(nothing)


def _joint(estimates: Mapping[Key, Estimate], logarithms: bool = False) -> dict[Key, Shown]:
    """Returns the numbers, or those of which they are ``logarithms``, with joint intervals."""
    level = 1 - (1 - LEVEL) / max(1, len(estimates))
    shown: dict[Key, Shown] = {}
    for key, (value, se, freedom) in estimates.items():
        ends = [value, *t_interval(value, se, freedom, level)]
        value, low, high = np.exp(ends).tolist() if logarithms else ends
        shown[key] = value, (low, high)
    return shown


def _shown(shown: Mapping[Key, Shown], expected: Iterable[str], unit: str) -> Evidence:
    """Returns numbers as evidence, not of support where something ``expected`` has none."""
    words = "; ".join(f"{key[1]}: {x:.3f} {_ends(*ends)}" for key, (x, ends) in shown.items())
    value, (low, high) = max(shown.values(), key=lambda number: number[0])
    unseen = set(expected) - {key for key, _ in shown}
    decides = [ends for _, ends in shown.values()] + [UNKNOWN for _ in unseen]
    return Evidence(words, value, low, high, unit=unit, decides=decides)
