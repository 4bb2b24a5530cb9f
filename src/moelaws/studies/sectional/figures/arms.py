"""What figures draw of the trained arms, which they show in one order and in fixed colours."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, records
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sectional.arms import (
    ARMS,
    DENSE,
    DIVIDED,
    SHAPE,
    SIZE,
    SLICES,
    WIDTHS,
    middle,
    of_arms,
    widest,
)
from moelaws.studies.sectional.derived.arms import smoothed
from moelaws.studies.sectional.derived.speeds import of_widths

POINTS = 80  # of a curve
SKIPPED = 0.05  # fraction of first steps, over which the smoothed loss averages too few
SHOWN = {"slice_all": 4, "slice_chunks": 4}  # the number of slices that is shown of an arm
COUNTED = {"all_ratio": "slice_all", "chunks_ratio": "slice_chunks"}  # column -> arm


def name_of(row: Row) -> str:
    """Returns the name of a row: the arm, and its number of slices or dense layers."""
    name = ARMS[row["arm"]]
    if row["arm"] in SLICES:
        return f"{name}, $E$ = {row['E']}"
    if row["n_dense_layers"] and row["arm"] in DIVIDED:
        return f"{name}, {row['n_dense_layers']} dense"
    return name


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows in the order of arms, with the ``name`` and the ``size`` of each."""
    rows = rows.assign(arm=pd.Categorical(rows["arm"], list(ARMS)))
    rows = rows.sort_values(["arm", *(name for name in SHAPE if name in rows)], kind="stable")
    sizes = [f"$d$ = {d}, $n$ = {n}" for d, n in zip(rows["d_model"], rows["context"], strict=True)]
    names = [name_of(row) for row in records(rows)]
    return rows.assign(name=pd.Categorical(names, [*dict.fromkeys(names)]), size=sizes)


def arms(inputs: Inputs) -> pd.DataFrame:
    """Returns the losses of all arms but the dense model, which the others are compared with."""
    table = inputs.derived("arms")
    return named(table[table["arm"] != DENSE])


def slices(inputs: Inputs) -> pd.DataFrame:
    """Returns the losses of both readings of slices."""
    table = inputs.derived("arms")
    return named(table[table["arm"].isin(SLICES)])


def longer(inputs: Inputs) -> pd.DataFrame:
    """Returns the losses beyond the trained length."""
    return named(inputs.derived("longer"))


def speeds(inputs: Inputs) -> pd.DataFrame:
    """Returns the measured cost of each arm, memory in MB."""
    table = inputs.derived("speeds").rename(columns={"sweep": "arm"})
    memory = {name: table[f"{name}_bytes"] / 1e6 for name in ("state", "activation")}
    return named(table.assign(**memory)[table["arm"].isin(ARMS)])


def load(inputs: Inputs) -> pd.DataFrame:
    """Returns the experts' load in the widest model."""
    more = {"overflow_1.25": "overflow_spare", "unused_1.25": "unused_spare"}
    return named(middle(widest(inputs.derived("load")))).rename(columns=more)


def shares(inputs: Inputs) -> pd.DataFrame:
    """Returns the experts' shares in the widest model, and the share of equal use."""
    table = middle(widest(inputs.derived("shares")))
    return named(table.assign(equal=1 / table["E"]))


def similarity(inputs: Inputs) -> pd.DataFrame:
    """Returns how alike the experts of the widest model are."""
    return named(middle(widest(inputs.derived("similarity"))))


def rates(inputs: Inputs) -> pd.DataFrame:
    """Returns the losses of the learning rates that were tried, with the arms' names."""
    table = inputs.derived("rates")
    return table.assign(arm=pd.Categorical(table["arm"], list(ARMS)), name=table["arm"].map(ARMS))


def costs(inputs: Inputs) -> pd.DataFrame:
    """Returns costs over slices at equal widths by ``convention``, counted or timed (``kind``)."""
    timed = inputs.derived("speeds")
    counted = of_widths(inputs.derived("counted"), timed)
    ratios = [name for name in counted if str(name).endswith("_ratio")]
    counted = counted.melt(["E"], ratios, "convention", "ratio")
    arms = {**COUNTED, **{sweep: arm for arm, sweep in WIDTHS.items()}}
    timed = timed[timed["sweep"].isin(arms)].rename(columns={"sweep": "convention"})
    rows = pd.concat({"counted": counted, "timed": timed}, names=["kind"]).reset_index("kind")
    rows = rows.assign(arm=pd.Categorical(rows["convention"].map(arms), list(ARMS)))
    return rows.assign(name=rows["arm"].map(ARMS).astype(str))


def learning(inputs: Inputs) -> pd.DataFrame:
    """Returns the smoothed training loss of a run of each arm, and the same less the dense one's.

    The runs are of the widest model and of the seed that the most arms have.
    """
    runs = of_arms(inputs)
    runs = runs[(runs["arm"].map(SHOWN) == runs["E"]) | ~runs["arm"].isin(SHOWN)]
    runs = middle(widest(runs))
    runs = runs[runs["seed"].isin(runs["seed"].mode()[:1])]
    curves: list[pd.DataFrame] = []
    dense: Any = np.nan
    for run in records(runs):
        history = inputs.history(run["run_id"])
        loss = smoothed(history["loss"].to_numpy(float))
        places = np.unique(np.linspace(SKIPPED * len(loss), len(loss) - 1, POINTS).astype(int))
        loss = loss[places]
        dense = loss if run["arm"] == DENSE else dense
        about = {name: run[name] for name in ("arm", *SHAPE, *SIZE)}
        tokens = history["tokens"].to_numpy(float)[places]
        curves.append(pd.DataFrame({**about, "tokens": tokens, "loss": loss, "less": loss - dense}))
    return named(pd.concat(curves))
