"""How the experts of each run were used, and how alike they are over training (sec 5.3.4).

Shapes: E experts, R layers of all runs or windows of one run, U hidden units of an expert, X
weights of a unit (3 d of SwiGLU).
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.accounting.balance import metrics
from moelaws.analysis.derive import Rows, of_runs, records, table
from moelaws.analysis.inputs import Inputs
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import ARM, of_arms
from moelaws.tables.column import Column

CAPACITY_FACTORS = (1.0, 1.25)
_CAPACITY = tuple(
    Column(f"{name}_{factor:g}", "float", f"{words}, capacity factor {factor:g}")
    for factor in CAPACITY_FACTORS
    for name, words in (
        ("overflow", "share of assignments beyond capacity"),
        ("unused", "share of capacity left empty"),
    )
)
SEED = 0  # of the random weights with which the trained ones are compared
_LAYER = re.compile(r"layers\.(\d+)\.moe\.routed_experts\.w_gate_up")


@table(
    ARM,
    *of_runs("run_id", "E", "n_dense_layers", "d_model", "context", "seed"),
    Column("held_out", "bool", "on held-out text at the end, or in a window of training"),
    Column("step", "int", "last step of the window", "steps"),
    Column("layer", "int", "transformer block, from 0"),
    Column("cv", "float", "coefficient of variation of tokens per expert, population"),
    Column("entropy", "float", "H(p) / ln E of the load, 1 when uniform"),
    Column("kl", "float", "KL(p || uniform) = ln E - H(p)", "nats"),
    *_CAPACITY,
    Column("never_used", "int", "without one token", "experts"),
)
def load(inputs: Inputs) -> Rows:
    """Yields a row for each run with routed experts, layer and window of training."""
    for run in records(_mixtures(inputs)):
        load = inputs.expert_load(run["run_id"])
        counts_RE = np.stack(load["assignments"].tolist())
        measures: dict[str, Any] = {}
        for factor in CAPACITY_FACTORS:
            own = metrics(counts_RE, factor)
            measures |= own | {f"{name}_{factor:g}": own[name] for name in ("overflow", "unused")}
        for place, window in enumerate(records(load)):
            cells = {name: values[place] for name, values in measures.items()}
            yield {**run, **window, **cells, "held_out": window["validation"] == 1}


@table(
    ARM,
    *of_runs("n_dense_layers", "d_model", "context", "E"),
    Column("rank", "int", "of the expert in its layer, 1 for the busiest"),
    Column("share", "float", "of a layer's held-out assignments, mean over layers and seeds"),
)
def fractions(inputs: Inputs) -> Rows:
    """Yields a row for each arm with routed experts, its shape and rank."""
    for _, own in _mixtures(inputs).groupby("arm", sort=False):
        for _, alike in own.groupby(["n_dense_layers", "d_model", "context", "E"]):
            loads = pd.concat(map(inputs.expert_load, alike["run_id"]))
            counts_RE = np.stack(loads.loc[loads["validation"] == 1, "assignments"].tolist())
            sorted_RE = -np.sort(-counts_RE / counts_RE.sum(1, keepdims=True))
            for rank, column in enumerate(sorted_RE.T, 1):
                yield {**alike.iloc[0], "rank": rank, "share": column.mean()}


@table(
    ARM,
    *of_runs("run_id", "d_model", "context", "n_dense_layers"),
    Column("step", "int", "optimizer steps behind the weights", "steps"),
    Column("layer", "int", "transformer block, from 0"),
    Column("cosine", "float", "of two experts' weights, mean over pairs"),
    Column("matched", "float", "of a unit and the most similar unit of another expert, mean"),
    Column("random", "float", "the same of normal random weights of the same shape"),
)
def similarity(inputs: Inputs) -> Rows:
    """Yields a row for each run with routed experts, kept step and layer that has them."""
    for run in records(_mixtures(inputs)):
        for step in (*inputs.kept_steps(run["run_id"]), None):
            weights = inputs.weights(run["run_id"], step)
            after = {"step": run["steps"] if step is None else step}
            for name in sorted(weights):
                if match := _LAYER.fullmatch(name):
                    units_EUX = units(weights, name.removesuffix("w_gate_up"))
                    own = {"cosine": cosine(units_EUX), "matched": matched(units_EUX)}
                    own |= {"random": _random(units_EUX.shape), "layer": int(match[1])}
                    yield {**run, **after, **own}


@cache
def _random(shape: tuple[int, ...]) -> float:
    """Returns how similar the units of random weights of a shape (E, U, X) are."""
    return matched(np.random.default_rng(SEED).normal(size=shape))


def _mixtures(inputs: Inputs) -> pd.DataFrame:
    runs = of_arms(inputs)
    return runs[runs["kind"] == "moe"]


def units(weights: Mapping[str, NDArray[Any]], at: str) -> Array:
    """Returns the weights of each hidden unit of each SwiGLU expert, (E, U, 3 d)."""
    gate_up, down = weights[f"{at}w_gate_up"], weights[f"{at}w_down"]
    gate, up = np.split(np.asarray(gate_up, float), 2, axis=2)
    return np.concatenate([gate.swapaxes(1, 2), up.swapaxes(1, 2), np.asarray(down, float)], axis=2)


def cosine(units_EUX: Array) -> float:
    """Returns the cosine of two experts' weights as they lie, mean over pairs."""
    flat = units_EUX.reshape(len(units_EUX), -1)
    flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return float((flat @ flat.T)[np.triu_indices(len(flat), 1)].mean())


def matched(units_EUX: Array) -> float:
    """Returns the cosine of a unit and the most similar one of another expert, mean over both.

    A unit whose up and down projections are both negated computes the same, and counts as the same.
    """
    unit = units_EUX / np.linalg.norm(units_EUX, axis=2, keepdims=True)
    gate, rest = np.split(unit, [unit.shape[2] // 3], axis=2)
    best = [
        (gate[one] @ gate[other].T + np.abs(rest[one] @ rest[other].T)).max(axis=1).mean()
        for one in range(len(unit))
        for other in range(len(unit))
        if one != other
    ]
    return float(np.mean(best))
