"""The best of several trials of each model, which fits take too by their key ``best_per``."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, of_runs, table
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
def warnings(frame: pd.DataFrame) -> list[str]:
    """Says of how many models there are several trials, and what choosing the best does."""
    several = int((frame["trials"] > 1).sum())
    biased = "the least of their losses is biased low, by about the spread between seeds"
    return [f"{several} of {len(frame)} models have several trials: {biased}"] * (several > 0)
