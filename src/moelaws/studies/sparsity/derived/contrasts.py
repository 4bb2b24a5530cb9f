"""The best trial of each model, and the gain from sparsity at equal budget, width and seed."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS, contrast_errors
from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column
from moelaws.tables.sweeps import best_trials

SETTINGS = ("G", "lr", "batch_tokens", "load_balance", "warmup")  # that Table 1 searches, and batch


@table(
    *of_runs("run_id", "C", "S", "N_total", "d_model", "seed", *SETTINGS, "recipe", "L", "L_se"),
    Column("trials", "int", "completed runs of this model at this budget and seed"),
    told={
        "trials > 1": "some models have several trials: the least of their losses is biased low, "
        "by about the spread between seeds"
    },
)
def tuned(inputs: Inputs, best_per: Sequence[str]) -> Rows:
    """Returns the run of least loss of all that agree in the columns ``best_per``."""
    runs = inputs.completed
    trials = runs.groupby([*best_per], dropna=False)["L"].transform("count")
    return runs.assign(trials=trials)[best_trials(runs, best_per)]


@table(
    *of_runs("run_id", "C", "d_model", "seed", "S"),
    Column("S_against", "float", "sparsity of the densest run"),
    Column("difference", "float", "loss of the run less that of the densest one", "nats/token"),
    Column("paired_se", "float?", "its error by documents, paired", "nats/token"),
    Column("unpaired_se", "float?", "its error if each loss had its own text", "nats/token"),
    Column("seed_se", "float?", f"its error {BY_SEEDS}", "nats/token"),
    told={
        "S_against > S_against.min()": "C={C:.3g}, d_model={d_model:g}, seed={seed:g}: runs are "
        "compared with S={S_against:g}, for the densest run did not complete",
        "paired_se.isna()": "C={C:.3g}: some contrasts have no paired error, for the losses by "
        "document of their runs are missing or damaged",
    },
)
def derive(inputs: Inputs) -> Rows:
    """Returns a row for each tuned run of a budget that is sparser than the densest one.

    Both agree in every setting but the number of experts and the steps, which follow from it. Runs
    whose configuration is not on record have none.
    """
    runs = inputs.derived("tuned").sort_values("S", kind="stable")
    tables: list[pd.DataFrame] = []
    for _, rows in runs.groupby(["C", "recipe", "seed"]):
        densest, errors = rows.iloc[0], contrast_errors(inputs, rows["run_id"])
        weights = np.eye(len(rows))
        weights[:, 0] -= 1
        own = rows.assign(
            S_against=densest["S"],
            difference=rows["L"] - densest["L"],
            paired_se=errors.documents(weights),
            unpaired_se=np.hypot(rows["L_se"], densest["L_se"]),
            seed_se=errors.seeds(weights),
        )
        tables.append(own[own["S"] > densest["S"]])
    return pd.concat(tables).sort_values(["C", "d_model", "seed", "S"], ignore_index=True)
