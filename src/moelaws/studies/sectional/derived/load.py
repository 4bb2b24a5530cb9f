"""How evenly the experts of each run were used: by layer, over training and on held-out text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.accounting.balance import metrics
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sectional.arms import ARMS
from moelaws.tables.column import Column

CAPACITY_FACTORS = (1.0, 1.25)
_CAPACITY = tuple(
    Column(f"{name}_{factor:g}", "float", "1", f"{words}, capacity factor {factor:g}")
    for factor in CAPACITY_FACTORS
    for name, words in (
        ("overflow", "share of assignments beyond capacity"),
        ("unused", "share of capacity left empty"),
    )
)


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    Column("run_id", "string", "1", "identity of the run"),
    Column("E", "int", "experts", "routed experts a layer"),
    Column("n_dense_layers", "int", "layers", "blocks without experts"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length"),
    Column("seed", "int", "1", "seed of the run"),
    Column("held_out", "bool", "1", "on held-out text at the end, or in a window of training"),
    Column("step", "int", "steps", "last step of the window"),
    Column("layer", "int", "1", "transformer block, from 0"),
    Column("cv", "float", "1", "coefficient of variation of tokens per expert, population"),
    Column("entropy", "float", "1", "H(p) / ln E of the load, 1 when uniform"),
    Column("kl", "float", "nats", "KL(p || uniform) = ln E - H(p)"),
    *_CAPACITY,
    Column("never_used", "int", "experts", "without one token"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each run with routed experts, layer and window of training."""
    return pd.DataFrame([row for arm in ARMS for row in _rows(inputs, arm)])


def _rows(inputs: Inputs, arm: str) -> Iterator[dict[str, Any]]:
    runs = inputs.sweep(arm)
    for _, run in runs[runs["kind"] == "moe"].iterrows():
        load = inputs.expert_load(str(run["run_id"]))
        counts_RE = np.stack(load["assignments"].tolist())
        by_factor = {factor: metrics(counts_RE, factor) for factor in CAPACITY_FACTORS}
        even = by_factor[CAPACITY_FACTORS[0]]
        for place, (_, window) in enumerate(load.iterrows()):
            yield {
                "arm": arm,
                **{
                    name: run[name]
                    for name in ("run_id", "E", "n_dense_layers", "d_model", "context", "seed")
                },
                "held_out": bool(window["validation"]),
                "step": window["step"],
                "layer": window["layer"],
                **{name: even[name][place] for name in ("cv", "entropy", "kl", "never_used")},
                **{
                    f"{name}_{factor:g}": by_factor[factor][name][place]
                    for factor in CAPACITY_FACTORS
                    for name in ("overflow", "unused")
                },
            }
