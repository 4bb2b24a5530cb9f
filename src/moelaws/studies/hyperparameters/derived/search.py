"""The runs of the search with their distance from the best of their budget."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.hyperparameters.derived.near_optimal import TOLERANCE, near_optimal
from moelaws.tables.column import Column
from moelaws.tables.sweeps import in_sweep

SWEEPS = ("moe", "dense", "activation")
SETTINGS = ("lr", "batch_tokens")
GROUPS = ["A", "C"]  # a budget of one architecture: where losses are compared
END_WORDS = {"low": "the lowest", "high": "the highest", "only": "the only one"}
WORDS = {"lr": "learning rate", "batch_tokens": "batch"}


@table(
    *of_runs("run_id", "kind", "A", "E", "k", "C", "lr", "batch_tokens", "L"),
    Column("excess", "float", "1", "loss over the least of the same A and C, less 1"),
    Column("near", "int", "1", "1: excess within the tolerance, and no outlier; 0: not"),
    Column("tolerance", "float", "1", "of the excess (leverage, App E.1)"),
    Column("seed_sd", "float", "nats/token", "spread of L between seeds in this study", True),
)
def derive(inputs: Inputs) -> Rows:
    """Lists the completed runs of the study's searches, a row each.

    Raises:
        UserError: where no run of a search is completed.
    """
    table = inputs.completed
    searched = np.logical_or.reduce([in_sweep(table, name) for name in SWEEPS])
    frame = table[searched].reset_index(drop=True)
    frame["near"] = near_optimal(frame, SETTINGS, GROUPS).astype(int)
    frame["excess"] = frame["L"] / frame.groupby(GROUPS)["L"].transform("min") - 1
    frame["kind"] = np.where(frame["A"] == 1, "dense", "moe")
    frame["tolerance"] = TOLERANCE
    frame["seed_sd"] = seed_sd(table)
    return frame.sort_values(["A", "C", "lr", "batch_tokens"], ignore_index=True)


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Says where the search ends at a best run, and which differences are within noise."""
    lines = [
        f"A={A:.3g}: the best {WORDS[setting]} is {END_WORDS[end]} tried at C = "
        f"{', '.join(f'{C:.3g}' for C in budgets)}: bounds, no optima"
        for A, rows in frame.groupby("A")
        for setting in SETTINGS
        for end, budgets in bounds(rows, setting).items()
    ]
    sd, tolerance = float(frame["seed_sd"].iloc[0]), float(frame["tolerance"].iloc[0])
    allowed = tolerance * float(frame["L"].min())
    if math.isnan(sd):
        lines.append("no run was repeated with another seed: what is chance is not known")
    elif math.sqrt(2) * sd > allowed:
        lines.append(
            f"runs that differ in their seed alone differ by {math.sqrt(2) * sd:.2g} nats, more "
            f"than the tolerance of {allowed:.2g}: which runs are near-optimal is partly chance"
        )
    return lines


def bounds(rows: pd.DataFrame, setting: str) -> dict[str, list[float]]:
    """Returns the budgets of one A whose best run is at an end of the search, by that end."""
    budgets: dict[str, list[float]] = {}
    for C in sorted(rows["C"].unique()):
        if end := end_of_search(rows[rows["C"] == C], setting):
            budgets.setdefault(end, []).append(float(C))
    return budgets


def end_of_search(group: pd.DataFrame, setting: str) -> str:
    """Returns the end of a setting's values, low or high, that the best run of one (A, C) has.

    The text is empty where the best run lies between, and ``only`` where one value was tried.
    """
    best = group[setting].iloc[int(np.argmin(group["L"]))]
    low, high = best == group[setting].min(), best == group[setting].max()
    return "only" if low and high else "low" if low else "high" if high else ""
