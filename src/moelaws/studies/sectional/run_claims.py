"""What the sectional paper expects of trained models, measured on the arms (sec 5.3).

All arms of a size train on equally many tokens at the same FLOPs a token. Intervals are those over
seeds, whose spread is pooled over all arms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import (
    ARMS,
    CONVENTIONAL,
    DENSE,
    LEVEL,
    SHALLOW,
    SIZE,
    SLICES,
    WIDTHS,
)
from moelaws.studies.sectional.derived.arms import Spread
from moelaws.studies.sectional.derived.counted import of_widths
from moelaws.studies.sectional.learning import TARGET

Interval = tuple[float, float]
Size = tuple[int, ...]  # width, sequence length and tokens
OTHERS = (DENSE, SHALLOW, *CONVENTIONAL)
LEARNED, BALANCED = "chunk", "top2"  # a router without a balance loss, and one with it


def fewer_flops(inputs: Inputs) -> Evidence:
    """Returns the slope of the loss over log2 E at equal FLOPs, of each reading and size."""
    slopes = {
        f"{ARMS[arm]}{_at(size)}": contrast(rows, weights)
        for size, arm, rows, weights in _slopes(inputs.derived("arms"))
    }
    if not slopes:
        return Evidence("no two numbers of slices completed at one size")
    return _of(slopes, "nats/token for each doubling of E at equal FLOPs a token")


def better_loss(inputs: Inputs) -> Evidence:
    """Returns the best slices' loss less that of the best of dense and conventional models."""
    table, differences = inputs.derived("arms"), {}
    for size, rows in _by_size(table):
        others = rows[rows["arm"].isin(OTHERS)]
        for arm in SLICES:
            own = rows[rows["arm"] == arm]
            if len(own) and {DENSE, *CONVENTIONAL} <= set(others["arm"]):
                best, other = _best(own), _best(others)
                pair = pd.DataFrame([best, other])
                name = f"{ARMS[arm]}, E = {best['E']}, against {ARMS[other['arm']]}{_at(size)}"
                differences[name] = contrast(pair, np.array([1.0, -1.0]))
    if not differences:
        return Evidence("the dense model, both mixtures or the slices did not complete")
    return _of(differences, "nats/token")


def chunks_keep_the_loss(inputs: Inputs) -> Evidence:
    """Returns the losses of both ways to route chunks less that of the top-2 mixture."""
    differences = {}
    for size, rows in _by_size(inputs.derived("arms")):
        cells = rows.set_index("arm")
        for arm in ("position", LEARNED):
            if {arm, BALANCED} <= set(cells.index):
                pair = cells.loc[[arm, BALANCED]]
                differences[f"{ARMS[arm]}{_at(size)}"] = contrast(pair, np.array([1.0, -1.0]))
    if not differences:
        return Evidence("neither way to route chunks completed beside the top-2 mixture")
    return _of(differences, "nats/token")


def balanced(inputs: Inputs) -> Evidence:
    """Returns the variation of tokens per expert without a balance loss over that with one."""
    load = inputs.derived("load")
    load = load[load["held_out"] & load["arm"].isin((LEARNED, BALANCED))]
    cv = load.groupby([*SIZE[:2], "seed", "arm"])["cv"].mean().unstack("arm")
    if not {LEARNED, BALANCED} <= set(cv.columns) or not len(cv := cv.dropna()):
        return Evidence("no seed completed both with and without a balance loss")
    logs = np.log(cv[LEARNED] / cv[BALANCED])
    by_size = {size: rows.to_numpy(float) for size, rows in logs.groupby(SIZE[:2])}
    spread = Spread.of(list(by_size.values()))
    ratios: dict[str, tuple[float, Interval]] = {}
    for size, of_seeds in by_size.items():
        low, high = np.exp(spread.around(of_seeds.mean(), 1 / len(of_seeds)))
        name = f"{ARMS[LEARNED]} over {ARMS[BALANCED]}{_at(size)}"
        ratios[name] = float(np.exp(of_seeds.mean())), (float(low), float(high))
    evidence = _of(ratios, "of the variation with a balance loss")
    words = (
        f"the tokens per expert vary by {cv[LEARNED].mean():.2f} of their mean where a router of "
        f"chunks has no balance loss, and by {cv[BALANCED].mean():.2f} in the top-2 mixture with "
        f"one. The ratios: {evidence.measured}. Chunks that go by their place, and slices, are "
        "balanced by construction"
    )
    return replace(evidence, measured=words)


def cost_has_an_optimum(inputs: Inputs) -> Evidence:
    """Returns the time of a step with the best number of slices over that with one."""
    table, measured, open_ends = inputs.derived("speeds"), {}, False
    for arm in SLICES:
        rows = table[(table["sweep"] == WIDTHS[arm]) & (table["E"] > 1)].sort_values("E")
        if not len(rows):
            continue
        best = rows.iloc[int(np.argmin(rows["ratio"]))]
        # Where the last number is the best, where the optimum lies cannot be seen.
        open_ends |= bool(best["E"] == rows["E"].max())
        name = f"{ARMS[arm]}, best at E = {best['E']} of {', '.join(map(str, rows['E']))}"
        measured[name] = float(best["ratio"]), (float(best["low"]), float(best["high"]))
    if not measured:
        return Evidence("the time of a step was not measured at equal widths")
    evidence = _of(measured, "of the time with one slice")
    counted = of_widths(inputs.derived("counted"), table)
    last = counted[counted["E"] == counted["E"].max()].iloc[0]
    words = (
        f"{evidence.measured}. Counted FLOPs of {last['E']} slices are {last['all_ratio']:.2f} and "
        f"{last['chunks_ratio']:.2f} of those of one"
    )
    unknown = [(math.nan, math.nan)] if open_ends else []
    return replace(evidence, measured=words, decides=[*evidence.intervals, *unknown])


def larger_carry_more(inputs: Inputs) -> Evidence:
    """Returns how much more the loss falls with log2 E in wider models and longer sequences."""
    by_arm: dict[str, dict[Size, tuple[float, float, int]]] = {}
    for size, arm, rows, weights in _slopes(inputs.derived("arms")):
        by_arm.setdefault(arm, {})[size] = _value_and_error(rows, weights)
    changes: dict[str, tuple[float, Interval]] = {}
    for arm, slopes in by_arm.items():
        for small, large in ((a, b) for a in slopes for b in slopes):
            axis = _one_larger(small, large)
            if axis:
                (a, a_se, freedom), (b, b_se, _) = slopes[small], slopes[large]
                ends = t_interval(b - a, math.hypot(a_se, b_se), freedom, LEVEL)
                words = f"{axis} from {small[SIZE.index(axis)]} to {large[SIZE.index(axis)]}"
                changes[f"{ARMS[arm]}, {words}"] = b - a, ends
    if not changes:
        return Evidence("all runs with several numbers of slices have one width and one length")
    return _of(changes, "nats/token for each doubling of E")


def faster(inputs: Inputs) -> Evidence:
    """Returns the steps of the best slices to a target loss over the faster dense model's."""
    ratios: dict[str, tuple[float, Interval]] = {}
    for size, rows in _by_size(inputs.derived("arms")):
        dense = [(0.0, 0.0), *map(_log_pace, _records(rows[rows["arm"] == SHALLOW]))]
        base, base_reach = min(dense, key=lambda pace: pace[0])
        for arm in SLICES:
            own = rows[(rows["arm"] == arm) & rows["steps_ratio"].notna()]
            if not len(own):
                continue
            best = _best(own)
            log, reach = _log_pace(best)
            value, reach = math.exp(log - base), math.hypot(reach, base_reach)
            ends = value * math.exp(-reach), value * math.exp(reach)
            if math.isinf(log):  # a seed had not come to the target in all its steps
                ends = 1 / TARGET / math.exp(base), math.inf
            ratios[f"{ARMS[arm]}, E = {best['E']}{_at(size)}"] = value, ends
    if not ratios:
        return Evidence("no slices completed beside a dense model")
    return _of(ratios, "of the steps of the faster dense model")


def _log_pace(row: pd.Series[Any]) -> tuple[float, float]:
    """Returns ln of the steps over the dense model's, and half of its interval, NaN if unknown."""
    log, low = math.log(row["steps_ratio"]), math.log(row["steps_low"])
    return log, log - low


def _records(rows: pd.DataFrame) -> list[pd.Series[Any]]:
    return [row for _, row in rows[rows["steps_ratio"].notna()].iterrows()]


def contrast(rows: pd.DataFrame, weights: Array) -> tuple[float, Interval]:
    """Returns the sum of the losses of ``rows`` with ``weights`` and its interval over seeds."""
    value, se, freedom = _value_and_error(rows, weights)
    return value, t_interval(value, se, freedom, LEVEL)


def _value_and_error(rows: pd.DataFrame, weights: Array) -> tuple[float, float, int]:
    value = float(weights @ rows["L"].to_numpy(float))
    per_seed = np.sqrt(np.sum(np.square(weights) / rows["n_seeds"].to_numpy(float)))
    return value, float(rows["seed_sd"].iloc[0] * per_seed), int(rows["freedom"].iloc[0])


def _slopes(table: pd.DataFrame) -> Iterator[tuple[Size, str, pd.DataFrame, Array]]:
    """Yields size, reading, rows and the weights of L in the slope over log2 E."""
    for size, rows in _by_size(table):
        for arm in SLICES:
            own = rows[rows["arm"] == arm]
            if own["E"].nunique() > 1:
                x = np.log2(own["E"].to_numpy(float))
                yield size, arm, own, (x - x.mean()) / np.square(x - x.mean()).sum()


def _by_size(table: pd.DataFrame) -> Iterator[tuple[Size, pd.DataFrame]]:
    for _, rows in table.groupby(SIZE):
        yield tuple(int(rows[name].iloc[0]) for name in SIZE), rows


def _best(rows: pd.DataFrame) -> pd.Series[Any]:
    return rows.iloc[int(np.argmin(rows["L"]))]


def _one_larger(small: Size, large: Size) -> str:
    """Returns which of width and context is larger, where the other is the same; else nothing."""
    differ = [i for i in (0, 1) if small[i] != large[i]]
    return SIZE[differ[0]] if len(differ) == 1 and small[differ[0]] < large[differ[0]] else ""


def _at(size: Size) -> str:
    return f" (d = {size[0]}, {size[1]} positions)"


def _ends(low: float, high: float) -> str:
    return "(no interval: one seed each)" if math.isnan(low) else f"[{low:.3f}, {high:.3f}]"


def _of(measured: Mapping[str, tuple[float, Interval]], unit: str) -> Evidence:
    """Returns the evidence of several numbers with intervals, all of which decide."""
    words = "; ".join(
        f"{name}: {value:.3f} {_ends(*ends)}" for name, (value, ends) in measured.items()
    )
    value, (low, high) = max(measured.values(), key=lambda m: m[0])
    decides = [ends for _, ends in measured.values()]
    return Evidence(words, value, low, high, unit=unit, decides=decides)
