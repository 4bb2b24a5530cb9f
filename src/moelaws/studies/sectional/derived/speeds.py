"""The time and memory of a training step of each architecture, measured by turns in one process."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sectional.arms import DENSE, RATES, SIZE, WIDTHS
from moelaws.tables.column import Column

_BASE = "the dense model of the size, or of one slice at equal widths"


@table(
    Column("sweep", "string", "1", "arm of the grid, or sweep of slices at equal widths"),
    Column("E", "int", "experts", "routed experts a layer, or slices; 1 for dense"),
    Column("n_dense_layers", "int", "layers", "blocks without experts"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length"),
    Column("flops_per_token", "float", "FLOP/token", "training FLOPs without embeddings, M"),
    Column("tokens_per_second", "float", "tokens/s", "of training, in the median step"),
    Column("evaluation_tokens_per_second", "float", "tokens/s", "of the forward pass alone"),
    Column("ratio", "float", "1", f"time a token over that of {_BASE}"),
    Column("low", "float", "1", "lower end of an interval of at least 90 %, over rounds"),
    Column("high", "float", "1", "upper end"),
    Column("state_bytes", "float", "bytes", "weights, gradients and both moments"),
    Column("activation_bytes", "float", "bytes", "that wait for the backward pass of a step"),
    Column("device", "string", "1", "what it was measured on"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each architecture of the grid, in its order."""
    speeds = inputs.speed().merge(inputs.table.drop(columns="tokens_per_second"), on="run_id")
    speeds["sweep"] = speeds["sweep"].str.split(",").str[0].str.removeprefix(RATES)
    speeds["flops_per_token"] = speeds["C_leverage"] / speeds["D"]
    bases = {
        **{tuple(row[SIZE[:2]]): row for _, row in speeds[speeds["sweep"] == DENSE].iterrows()},
        **{
            row["sweep"]: row
            for _, row in speeds[speeds["sweep"].isin(WIDTHS.values())].iterrows()
            if row["E"] == 1
        },
    }
    rows = []
    for _, row in speeds.iterrows():
        of_widths = row["sweep"] in WIDTHS.values()
        base = bases.get(row["sweep"] if of_widths else tuple(row[SIZE[:2]]))
        if base is None:
            continue
        # Both are over the first architecture in the same round; the ends are those that the ends
        # of both allow, a wide interval.
        ends = {
            "low": row["time_ratio_low"] / base["time_ratio_high"],
            "high": row["time_ratio_high"] / base["time_ratio_low"],
        }
        if base["run_id"] == row["run_id"]:
            ends = {"low": 1.0, "high": 1.0}
        rows.append({**row, "ratio": row["time_ratio"] / base["time_ratio"], **ends})
    return pd.DataFrame(rows)
