"""Intrinsic dimension of the hidden states of the kept runs, layer by layer (App A.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.spec.errors import UserError
from moelaws.studies.generalization.derived.intrinsic_dimension import NEIGHBOURS, over_subsamples
from moelaws.tables.column import Column

MIDDLE = (0.4, 0.6)  # relative depth of the layers that stand for a model (App A.2)


@table(
    Column("run_id", "string", "1", "identity of the run"),
    Column("n_layers", "int", "layers", "transformer blocks"),
    Column("d_model", "int", "1", "width of the states: the most that a dimension can be"),
    Column("width", "int", "1", "hidden width of an expert"),
    Column("D", "float", "tokens", "training tokens"),
    Column("seed", "int", "1", "seed of the run"),
    Column("layer", "int", "layers", "blocks that the states have passed; 0: the embedding"),
    Column("depth", "float", "1", "layer / n_layers"),
    Column("middle", "bool", "1", "one of the middle layers, which stand for the model"),
    Column("points", "int", "1", "distinct states"),
    Column("subsample", "int", "1", "states in each random subsample"),
    Column("neighbours", "int", "1", "k: nearest neighbours of a state"),
    Column("dimension", "float", "1", "Levina-Bickel dimension, median over subsamples", True),
    Column("mad", "float", "1", "its median absolute deviation over subsamples", True),
)
def derive(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Gives a row for each layer of each completed run that has hidden states."""
    for run in inputs.completed.to_dict("records"):
        try:
            hidden = inputs.hidden(run["run_id"])
        except UserError:  # not among those whose weights are kept
            continue
        about = {name: run[name] for name in ("run_id", "n_layers", "d_model", "seed")}
        about |= {"width": run["d_expert"], "D": float(run["D"]), "neighbours": NEIGHBOURS}
        for layer in sorted(int(value) for value in hidden["layer"].unique()):
            states = hidden.loc[hidden["layer"] == layer, "state"]
            cloud = over_subsamples(np.stack(states.to_list()))
            depth = layer / run["n_layers"]
            yield {
                **about,
                "layer": layer,
                "depth": depth,
                "middle": MIDDLE[0] <= depth <= MIDDLE[1],
                "points": cloud.points,
                "subsample": cloud.subsample,
                "dimension": cloud.median,
                "mad": cloud.mad,
            }


def of_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each model: the median over its middle layers, and their largest MAD."""
    keys = ["run_id", "n_layers", "d_model", "width", "D", "seed"]
    models = frame[frame["middle"]].groupby(keys, as_index=False, sort=False)
    return models.agg(
        dimension=("dimension", "median"), mad=("mad", "max"), points=("points", "min")
    )


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where nothing was measured, or where the width limits the dimension."""
    if frame.empty:
        return ["no hidden states: no completed run's weights are kept"]
    narrow = frame[frame["dimension"] > frame["d_model"] / 2]
    if narrow.empty:
        return []
    return [
        f"{narrow['run_id'].nunique()} models have a dimension above half their width, which "
        "bounds it: a statement on so narrow states says little of the data"
    ]
