"""How alike the experts of a layer are in their weights, at the end of training (sec 5.3.4).

Shapes: E experts, U hidden units of an expert, X weights of a unit (3 d of SwiGLU).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import ARMS
from moelaws.tables.column import Column

SEED = 0  # of the random weights beside which the trained ones stand
_LAYER = re.compile(r"layers\.(\d+)\.moe\.routed_experts\.w_gate_up")


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    Column("run_id", "string", "1", "identity of the run"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length"),
    Column("n_dense_layers", "int", "layers", "blocks without experts"),
    Column("layer", "int", "1", "transformer block, from 0"),
    Column("cosine", "float", "1", "of two experts' weights, mean over pairs"),
    Column("matched", "float", "1", "of a unit and the most similar unit of another expert, mean"),
    Column("random", "float", "1", "the same of normal random weights of the same shape"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each run with routed experts and layer of them."""
    return pd.DataFrame([row for arm in ARMS for row in _rows(inputs, arm)])


def _rows(inputs: Inputs, arm: str) -> Iterator[dict[str, Any]]:
    runs = inputs.sweep(arm)
    for _, run in runs[runs["kind"] == "moe"].iterrows():
        weights = inputs.weights(str(run["run_id"]))
        for name in sorted(weights):
            if not (match := _LAYER.fullmatch(name)):
                continue
            units_EUX = units(weights, name.removesuffix("w_gate_up"))
            normal = np.random.default_rng(SEED).normal(size=units_EUX.shape)
            yield {
                "arm": arm,
                **{
                    column: run[column]
                    for column in ("run_id", "d_model", "context", "n_dense_layers")
                },
                "layer": int(match[1]),
                "cosine": cosine(units_EUX),
                "matched": matched(units_EUX),
                "random": matched(normal),
            }


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

    A unit computes the same with both its up and its down projection negated, and counts as such.
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
