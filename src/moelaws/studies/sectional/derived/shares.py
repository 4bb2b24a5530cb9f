"""What share of the held-out tokens each expert got, the busiest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sectional.arms import ARMS
from moelaws.tables.column import Column


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    Column("n_dense_layers", "int", "layers", "blocks without experts"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length"),
    Column("E", "int", "experts", "routed experts a layer"),
    Column("rank", "int", "1", "of the expert in its layer, 1 for the busiest"),
    Column("share", "float", "1", "of a layer's held-out assignments, mean over layers and seeds"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each arm with routed experts, its shape and rank."""
    return pd.DataFrame([row for arm in ARMS for row in _rows(inputs, arm)])


def _rows(inputs: Inputs, arm: str) -> Iterator[dict[str, Any]]:
    runs = inputs.sweep(arm)
    shape = ["n_dense_layers", "d_model", "context", "E"]
    for values, alike in runs[runs["kind"] == "moe"].groupby(shape):
        loads = (inputs.expert_load(str(run_id)) for run_id in alike["run_id"])
        counts_RE = np.concatenate(
            [np.stack(load.loc[load["validation"] == 1, "assignments"].tolist()) for load in loads]
        )
        share_RE = -np.sort(-counts_RE / counts_RE.sum(1, keepdims=True))
        for rank in range(share_RE.shape[1]):
            yield {
                "arm": arm,
                **dict(zip(shape, values, strict=True)),
                "rank": rank + 1,
                "share": share_RE[:, rank].mean(),
            }
