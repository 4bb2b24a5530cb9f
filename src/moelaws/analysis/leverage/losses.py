"""The runs that the joint law of leverage speaks of: dense, activation and granularity sweeps."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column

SWEEPS = ("dense", "activation", "granularity")

COLUMNS = (
    Column("run_id", "string", "1", "identity of the run"),
    Column("status", "string", "1", "completed: no others are here"),
    Column("C", "float", "FLOP", "training FLOPs of the run, without logits"),
    Column("S", "float", "1", "sparsity (E - k) / E"),
    Column("G", "float", "1", "granularity 2 d_model / d_expert"),
    Column("L", "float", "nats/token", "validation loss"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS``: each completed run of ``SWEEPS`` once."""
    rows = pd.concat([inputs.sweep(name) for name in SWEEPS]).drop_duplicates("run_id")
    rows = rows.assign(C=rows["C_leverage"])
    return rows[[c.name for c in COLUMNS]].reset_index(drop=True)


def warnings(frame: pd.DataFrame) -> list[str]:
    """None: the study's table tells of runs that did not complete."""
    return []
