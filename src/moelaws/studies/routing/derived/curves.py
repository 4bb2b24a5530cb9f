"""The loss of each published run over its steps, out of the authors' file."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column


@table(
    Column("run_id", "string", "1", "the run, as in the study's table"),
    Column("router", "string", "1", "routing technique, or Dense"),
    Column("size", "string", "1", "size label of the dense base model"),
    Column("E", "int", "experts", "routed experts a layer; 1 for dense"),
    Column("k_source", "int", "experts", "k as in the source"),
    Column("routing_frequency", "float", "1", "share of blocks with a routed layer"),
    Column("step", "int", "steps", "training steps before the evaluation"),
    Column("D", "int", "tokens", "training tokens by then"),
    Column("L", "float", "nats/token", "validation loss"),
)
def derive(inputs: Inputs, file: str) -> pd.DataFrame:
    """Returns one row an evaluation of each run of the study's table that has a loss.

    Args:
        inputs: with the authors' file among its data.
        file: its name in the study's package.
    """
    source = inputs.shipped(file)
    curves = pd.DataFrame(
        {
            "run_id": source["hyper_id"].astype(str),
            "step": source["step"],
            "L": source["loss_validation"],
        }
    )
    runs = inputs.completed.astype({"batch_tokens": "int64", "E": "int64", "k_source": "int64"})
    own = ["run_id", "router", "size", "E", "k_source", "routing_frequency", "batch_tokens"]
    frame = curves.dropna().merge(runs[own], on="run_id", validate="many_to_one")
    return frame.assign(D=frame["step"] * frame["batch_tokens"]).sort_values(
        ["router", "size", "E", "run_id", "step"], ignore_index=True
    )
