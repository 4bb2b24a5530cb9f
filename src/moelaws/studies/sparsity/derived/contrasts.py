"""The best trial of each model, and the gain from sparsity at equal budget, width and seed."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS, contrast_errors
from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column
from moelaws.tables.sweeps import best_trials

SETTINGS = ("G", "lr", "batch_tokens", "load_balance", "warmup")  # that Table 1 searches, and batch


@table(
    *of_runs("run_id", "C", "S", "N_total", "d_model", "seed", *SETTINGS, "recipe", "L", "L_se"),
    Column("trials", "int", "1", "completed runs of this model at this budget and seed"),
    Column("margin", "float", "nats/token", "loss of the second-best trial less this one", True),
)
def tuned(inputs: Inputs, best_per: Sequence[str]) -> Rows:
    """Returns the run of least loss of all that agree in the columns ``best_per``."""
    runs = inputs.completed
    losses = runs.groupby([*best_per], dropna=False)["L"]
    second = losses.transform(lambda L: np.partition(L, 1)[1] if len(L) > 1 else np.nan)
    more = runs.assign(trials=losses.transform("count"), margin=second - runs["L"])
    return more[best_trials(runs, best_per)]


@tuned.limits
def tuned_warnings(frame: pd.DataFrame) -> list[str]:
    """Says of how many models there are several trials, and what choosing the best does."""
    several = int((frame["trials"] > 1).sum())
    biased = "the least of their losses is biased low, by about the spread between seeds"
    return [f"{several} of {len(frame)} models have several trials: {biased}"] * (several > 0)


@table(
    Column("against", "string", "1", "identity of the densest run of this budget, width and seed"),
    *of_runs("run_id", "C", "d_model", "seed", "S"),
    Column("S_against", "float", "1", "sparsity of the densest run"),
    Column("difference", "float", "nats/token", "loss of the run less that of the densest one"),
    Column("paired_se", "float", "nats/token", "its error by documents, paired", True),
    Column("unpaired_se", "float", "nats/token", "its error if each loss had its own text", True),
    Column("seed_se", "float", "nats/token", f"its error {BY_SEEDS}", True),
)
def derive(inputs: Inputs) -> Rows:
    """Returns a row for each tuned run of a budget that is sparser than the densest one.

    Both agree in every setting but the number of experts and the steps, which follow from it. Runs
    whose configuration is not on record have none.
    """
    runs = inputs.derived("tuned").sort_values("S", kind="stable")
    records: list[Row] = []
    for _, rows in runs.groupby(["C", "recipe", "seed"]):
        densest, errors = rows.iloc[0], contrast_errors(inputs, rows["run_id"])
        for place, (_, row) in enumerate(rows.iterrows()):
            if row["S"] == densest["S"]:
                continue
            weights = np.zeros(len(rows))
            weights[[place, 0]] = 1.0, -1.0
            own = {"against": densest["run_id"], "S_against": densest["S"]}
            own |= {"difference": row["L"] - densest["L"], "seed_se": float(errors.seeds(weights))}
            own["paired_se"] = float(errors.documents(weights))
            own["unpaired_se"] = float(np.hypot(row["L_se"], densest["L_se"]))
            records.append({**row, **own})
    return sorted(records, key=lambda r: [r[name] for name in ("C", "d_model", "seed", "S")])


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Says where the densest run is missing, and how many contrasts have no paired error."""
    lines = [
        f"C={C:.3g}, d_model={d_model:g}, seed={seed:g}: runs are compared with S={S:g}, for the "
        "densest run did not complete"
        for (C, d_model, seed, S), _ in frame.groupby(["C", "d_model", "seed", "S_against"])
        if frame["S_against"].min() < S
    ]
    if missing := int(frame["paired_se"].isna().sum()):
        lines.append(
            f"{missing} of {len(frame)} contrasts have no paired error: the losses by document of "
            "their runs are missing or damaged"
        )
    return lines
