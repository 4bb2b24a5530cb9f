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

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, slope_weights
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import (
    ARMS,
    BALANCED,
    CHUNKS,
    DENSE,
    DIVIDED,
    LEARNED,
    PLACED,
    SHALLOW,
    SIZE,
    SLICES,
    WIDTHS,
    middle,
)
from moelaws.studies.sectional.derived.arms import TARGET

Size = tuple[Any, ...]  # width, sequence length and tokens
Key = tuple[str, str]  # what a claim needs, such as an arm, and the words for one number of it
SECTIONS = (*SLICES, *CHUNKS)
PLACE = ["arm", *SIZE[:2]]
UNKNOWN = Effect(math.nan)
LESS = np.array([1.0, -1.0])  # the weights of a difference


class Contrast(NamedTuple):
    """A number, its standard error over seeds, and the error's degrees of freedom."""

    value: float
    se: float
    freedom: int


def fewer_flops(inputs: Inputs) -> Evidence:
    """Returns the slope of the loss over log2 E at equal FLOPs, of each reading and size."""
    slopes = {(arm, f"{ARMS[arm]}{_at(*size)}"): slope for arm, size, slope in _slopes(inputs)}
    return _shown(
        _joint(slopes),
        SLICES,
        "nats/token for each doubling of E at equal FLOPs a token",
        "no two numbers of slices completed at one size",
    )


def better_loss(inputs: Inputs, own: list[str], others: list[str]) -> Evidence:
    """Returns the best loss of each of the ``own`` arms less that of the best of ``others``."""
    differences = {}
    for arm, size, tried, rows in _cells(inputs, own):
        rivals = rows[rows["arm"].isin(others)]
        if set(others) == set(rivals["arm"]):
            best, rival = _best(tried), _best(rivals)
            name = f"{ARMS[arm]}, E = {best['E']}, against {ARMS[rival['arm']]}{_at(*size)}"
            differences[arm, name] = contrast(pd.DataFrame([best, rival]), LESS)
    return _shown(
        _joint(differences), own, "nats/token", "some arm that is compared did not complete"
    )


def chunks_keep_the_loss(inputs: Inputs) -> Evidence:
    """Returns the loss of each way to route chunks, less that of the top-2 mixture."""
    differences = {}
    for arm, size, own, rows in _cells(inputs, CHUNKS):
        pair = pd.concat([own, rows[rows["arm"] == BALANCED]])
        if len(pair) == len(LESS):
            differences[arm, f"{ARMS[arm]}{_at(*size)}"] = contrast(pair, LESS)
    return _shown(
        _joint(differences),
        CHUNKS,
        "nats/token",
        "neither way to route chunks completed beside the top-2 mixture",
    )


def balanced(inputs: Inputs) -> Evidence:
    """Returns the variation of tokens per expert without a balance loss over that with one.

    That of chunks by their place is no matter of training, so that it has no interval.
    """
    load = inputs.derived("load")
    cells = load[load["held_out"]].groupby([*SIZE[:2], "seed", "arm"])
    cv = cells["cv"].mean().unstack("arm").reindex(columns=[PLACED, LEARNED, BALANCED])
    if not len(cv := cv[(cv[[LEARNED, BALANCED]] > 0).all(axis=1)]):
        return Evidence("no seed completed both with and without a balance loss")
    logs = pd.concat({LEARNED: (cv[LEARNED] / cv[BALANCED]).map(math.log)}, names=["arm"])
    ratios = _joint(_pooled(logs, f" over {ARMS[BALANCED]}"), logarithms=True)
    by_place = float((cv[PLACED] / cv[BALANCED]).max())
    if math.isfinite(by_place):
        placed = Effect(by_place, by_place, by_place)
        ratios[PLACED, f"{ARMS[PLACED]}, even by construction"] = placed
    evidence = _shown(ratios, [LEARNED], "of the variation with a balance loss")
    words = (
        f"the tokens per expert vary by {cv[LEARNED].mean():.2f} of their mean where a router of "
        f"chunks has no balance loss, and by {cv[BALANCED].mean():.2f} in the top-2 mixture with "
        f"one (held-out text; {len(cv)} runs of each). The ratios are: {evidence.measured}. "
        "Slices are even by construction, too"
    )
    return replace(evidence, measured=words)


def cost_has_an_optimum(inputs: Inputs) -> Evidence:
    """Returns the time of a step with the best number of slices over that with one."""
    table = inputs.derived("speeds")
    shown, expected = {}, [*SLICES]
    for arm in SLICES:
        rows = table[(table["sweep"] == WIDTHS[arm]) & (table["E"] > 1)].sort_values("E")
        if not len(rows):
            continue
        best = _best(rows, "ratio")
        ratio = Effect.of_row(best, "ratio")
        rises = (rows.loc[rows["E"] > best["E"], "low"] > ratio.high).any()
        if not rises:  # the optimum may lie at more slices, or the time may stay where it is
            expected.append(f"{arm} rises")
        tried = ", ".join(map(str, rows["E"]))
        beyond = "it rises beyond" if rises else "it does not clearly rise beyond"
        shown[arm, f"{ARMS[arm]}, best at E = {best['E']} of {tried}, and {beyond}"] = ratio
    return _shown(
        shown,
        expected,
        "of the time with one slice",
        "the time of a step was not measured at equal widths",
    )


def generates_faster(inputs: Inputs) -> Evidence:
    """Returns the time to generate a token by each way to make sections over the mixture's.

    Slices have the middle one of the numbers tried, so that none is chosen by its time.
    """
    table = inputs.derived("speeds").rename(columns={"sweep": "arm"})
    table = table[table["arm"].isin(SECTIONS)].dropna(subset=["latency_ratio"])
    table = middle(table, "E").set_index(PLACE).sort_index()
    ratios = table[["latency_ratio", "latency_low", "latency_high"]].itertuples(name=None)
    shown: dict[Key, Effect] = {
        (arm, f"{ARMS[arm]}{_at(*size)}"): Effect(*times) for (arm, *size), *times in ratios
    }
    return _shown(
        shown,
        SECTIONS,
        "of the top-2 mixture's time for a token",
        "the time to generate a token was not measured beside the top-2 mixture",
    )


def specialise(inputs: Inputs) -> Evidence:
    """Returns how the cosine of experts' matched units changes from the first kept step on."""
    table = middle(inputs.derived("similarity"))
    needed = *CHUNKS, *DIVIDED
    means = table[table["arm"].isin(needed)].groupby([*PLACE, "run_id", "step"])["matched"].mean()
    runs = means.groupby([*PLACE, "run_id"])
    change = _pooled((runs.last() - runs.first())[runs.size() > 1])
    return _shown(
        _joint(change),
        needed,
        "of the cosine of matched units",
        "no run keeps weights at steps on the way",
    )


def longer_sequences(inputs: Inputs) -> Evidence:
    """Returns how much less than the dense model's the loss rises beyond the trained context.

    Slices have the middle one of the numbers tried. Both models of a difference have one seed.
    """
    table = middle(inputs.derived("longer"), "E")
    rises = table.pivot_table("rise", [*SIZE[:2], "seed"], "arm")
    if DENSE not in rises:
        return Evidence("no dense model was evaluated in longer sequences")
    more = pd.Series(rises.sub(rises[DENSE], axis=0).stack())
    means = _pooled(more[more.index.isin(SECTIONS, level="arm")])
    return _shown(
        _joint(means),
        SECTIONS,
        "nats/token more than in the dense model",
        "no sections were evaluated in longer sequences beside a dense model",
    )


def larger_carry_more(inputs: Inputs) -> Evidence:
    """Returns how much more the loss falls with log2 E in wider models and longer sequences."""
    changes = {}
    for (arm, small, one), (other, large, two) in permutations(_slopes(inputs), 2):
        axis, words = _one_larger(small, large)
        if axis and arm == other:
            changes[f"{arm}, {axis}", f"{ARMS[arm]}, {words}"] = Contrast(
                two.value - one.value, math.hypot(one.se, two.se), min(one.freedom, two.freedom)
            )
    expected = [f"{arm}, {axis}" for arm in SLICES for axis in SIZE[:2]]
    return _shown(
        _joint(changes),
        expected,
        "nats/token for each doubling of E",
        "all runs with several numbers of slices have one width and one length",
    )


def faster(inputs: Inputs) -> Evidence:
    """Returns the steps of the best slices to a target loss over the faster dense model's."""
    ratios, never = {}, {}
    for arm, size, own, rows in _cells(inputs, SLICES):
        dense = rows[rows["arm"] == DENSE].assign(steps_ratio=1.0)
        own = own.dropna(subset=["steps_ratio"])
        if not len(dense) or not len(own):
            continue
        best = _best(own)
        base = _best(pd.concat([dense, rows[rows["arm"] == SHALLOW]]), "steps_ratio")
        name = f"{ARMS[arm]}, E = {best['E']}{_at(*size)}"
        if math.isfinite(best["steps_ratio"]):
            value = math.log(best["steps_ratio"] / base["steps_ratio"])
            pair = pd.DataFrame([best, base])
            ratios[arm, name] = Contrast(value, *_error(pair, LESS, "steps_sd", "steps_freedom"))
        else:  # some seeds would need more steps than they trained
            known = best["reached"] == 0 and best["n_seeds"] > 1
            words = f"{name} ({best['reached']} of {best['n_seeds']} seeds came to it)"
            low = 1 / TARGET / float(base["steps_ratio"]) if known else math.nan
            never[arm, words] = Effect(math.inf, low, math.inf if known else math.nan)
    unit = "of the steps of the faster dense model"
    return _shown(
        never | _joint(ratios, logarithms=True),
        SLICES,
        unit,
        "no slices completed beside a dense model",
    )


def contrast(rows: pd.DataFrame, weights: Array) -> Contrast:
    """Returns the sum of the losses of ``rows`` with ``weights``, which sum to zero."""
    error = _error(rows, weights, "seed_sd", "freedom")
    return Contrast(float(weights @ rows["L"].to_numpy(float)), *error)


def _error(rows: pd.DataFrame, weights: Array, sd: str, freedom: str) -> tuple[float, int]:
    """Returns the error over seeds of a sum with ``weights``, and its degrees of freedom.

    It is unknown where some rows lack a seed of the others: the effect that a seed has on all arms
    would not cancel.
    """
    per_seed = np.sqrt(np.sum(np.square(weights) / rows["n_seeds"].to_numpy(float)))
    paired = 1.0 if rows["seeds"].nunique() == 1 else math.nan
    return float(rows[sd].iloc[0] * per_seed * paired), int(rows[freedom].iloc[0])


def _pooled(values: pd.Series, over: str = "") -> dict[Key, Contrast]:
    """Returns each arm's and size's mean, with an error by the spread within these, pooled."""
    cells: Any = values.groupby(PLACE)
    freedom = len(values) - cells.ngroups
    squares = float(np.square(values - cells.transform("mean")).sum())
    sd = math.sqrt(squares / freedom) if freedom else math.nan
    return {
        (arm, f"{ARMS[arm]}{over}{_at(*size)}"): Contrast(
            float(own.mean()), sd / math.sqrt(len(own)), freedom
        )
        for (arm, *size), own in cells
    }


def _cells(
    inputs: Inputs, arms: Iterable[str]
) -> Iterator[tuple[str, Size, pd.DataFrame, pd.DataFrame]]:
    """Yields, for each size and each of the arms that it has, the rows of the arm and of all."""
    for size, rows in inputs.derived("arms").groupby(SIZE):
        for arm in arms:
            if len(own := rows[rows["arm"] == arm]):
                yield arm, size, own, rows


def _slopes(inputs: Inputs) -> Iterator[tuple[str, Size, Contrast]]:
    """Yields the slope of L over log2 E of each reading and size."""
    for arm, size, own, _ in _cells(inputs, SLICES):
        if own["E"].nunique() > 1:
            yield arm, size, contrast(own, slope_weights(np.log2(own["E"].to_numpy(float))))


def _best(rows: pd.DataFrame, by: str = "L") -> pd.Series:
    return rows.iloc[int(np.argmin(rows[by]))]


def _one_larger(small: Size, large: Size) -> tuple[str, str]:
    """Returns which of width and context is larger, and words for it; "" where both differ.

    Tokens may differ a little, as they are whole steps, which are larger with longer sequences.
    """
    (d, n, D), (wider, longer, more) = small, large
    same = math.isclose(D, more, rel_tol=0.01)
    if same and d < wider and n == longer:
        return SIZE[0], f"d from {d} to {wider} ({n} positions)"
    if same and d == wider and n < longer:
        return SIZE[1], f"positions from {n} to {longer} (d = {d})"
    return "", ""


def _at(d: int, n: int, D: float = 0.0) -> str:
    tokens = f", {D / 1e6:.3g}M tokens" if D else ""
    return f" (d = {d}, {n} positions{tokens})"


def _joint(contrasts: Mapping[Key, Contrast], logarithms: bool = False) -> dict[Key, Effect]:
    """Returns the numbers, or those of which they are ``logarithms``, with joint intervals."""
    level = 1 - (1 - LEVEL) / max(1, len(contrasts))
    shown = {
        key: Effect(value, *t_interval(value, se, freedom, level))
        for key, (value, se, freedom) in contrasts.items()
    }
    return {key: one.map(np.exp) for key, one in shown.items()} if logarithms else shown


def _shown(
    shown: Mapping[Key, Effect], expected: Iterable[str], unit: str, nothing: str = ""
) -> Evidence:
    """Returns numbers as evidence, all of which decide, or says that there is ``nothing``.

    It is not evidence of support where something ``expected`` has no number.
    """
    if not shown:
        return Evidence(nothing)
    words = "; ".join(f"{words}: {number}" for (_, words), number in shown.items())
    largest = max(shown.values(), key=lambda number: number.value)
    unseen = set(expected) - {key for key, _ in shown}
    return Evidence(words, largest, unit, [*shown.values(), *(UNKNOWN for _ in unseen)])
