"""Selects rows of a study's table: those of one of its sweeps, and the best of several trials."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from moelaws.records.summary import Status
from moelaws.spec.errors import UserError
from moelaws.tables.foreign import as_numbers


def in_sweep(table: pd.DataFrame, sweep: str) -> NDArray[np.bool_]:
    """Returns a mask (n,) of the rows that the study's sweep ``sweep`` has."""
    if "sweep" not in table.columns:
        raise UserError(f"sweep is {sweep!r}, but the table has no column sweep")
    names = table["sweep"].astype(str).str.split(",")
    return np.array([sweep in of_row for of_row in names], dtype=bool)


def completed(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Returns a mask (n,) of the completed runs, or of all if the table does not use our words.

    A stranger's column of that name, with FINISHED or the like, is a column as any other.
    """
    if "status" not in table or not set(table["status"].dropna()) <= set(get_args(Status)):
        return np.ones(len(table), dtype=bool)
    return (table["status"].astype(str) == "completed").to_numpy(dtype=bool)


def best_trials(
    table: pd.DataFrame, columns: Sequence[str], used: ArrayLike = True, loss: str = "L"
) -> NDArray[np.bool_]:
    """Returns a mask (n,) of the ``used`` rows of least ``loss`` among those alike in ``columns``.

    Without ``columns`` these are all. The first of equal rows is taken, and none without a loss.
    """
    used = np.array(np.broadcast_to(used, len(table)), dtype=bool)
    if not columns:
        return used
    if missing := next((name for name in (*columns, loss) if name not in table), ""):
        raise UserError(f"best_per needs the column {missing!r}, which the table lacks")
    losses = as_numbers(table[loss])
    order = np.argsort(losses, kind="stable")
    order = order[(used & ~np.isnan(losses))[order]]
    trials = table.reset_index(drop=True).iloc[order]
    best = np.zeros(len(table), dtype=bool)
    best[trials.drop_duplicates(list(columns)).index] = True
    return best
