"""The runs that the joint law of leverage is fitted to in one stage, each of them once."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column

SWEEPS = ("dense", "activation", "granularity")


@table(
    Column("run_id", "string", "1", "identity of the run"),
    Column("status", "string", "1", "completed: no others are here"),
    Column("C", "float", "FLOP", "training FLOPs of the run, without logits"),
    Column("S", "float", "1", "sparsity (E - k) / E"),
    Column("G", "float", "1", "granularity 2 d_model / d_expert"),
    Column("L", "float", "nats/token", "validation loss"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each completed run of ``SWEEPS``, with C in the paper's convention."""
    runs = pd.concat([inputs.sweep(name) for name in SWEEPS]).drop_duplicates("run_id")
    return runs.assign(C=runs["C_leverage"]).reset_index(drop=True)
