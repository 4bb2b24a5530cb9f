"""The near-optimal runs and the best size of each budget, to which laws are fitted."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import seed_sd
from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import TOO_FEW, parabola_minima
from moelaws.analysis.regression import of_draws
from moelaws.spec.errors import UserError
from moelaws.tables.column import INSIDE, NOTE, RUNS, Column, estimated
from moelaws.tables.sweeps import in_sweep

TOLERANCE = 0.0025  # leverage, App E.1; App M has .005
OUTLIER = 3.5  # modified z-score, Iglewicz and Hoaglin 1993


def near_optimal(
    frame: pd.DataFrame, settings: Sequence[str], groups: Sequence[str] = ("C",)
) -> pd.Series:
    """Returns a mask of the rows that are near the best of their group and no outliers.

    A row is near where its loss is at most 1 + ``TOLERANCE`` times the group's least; a row
    without a loss never is. The paper removes outliers without saying how. Here an outlier is a
    near row where the logarithm of one of ``settings`` (positive columns, such as lr) has a
    modified z-score (``modified_z``) above ``OUTLIER`` among the near rows of its group. Source:
    leverage, App E.1.

    A UserError refuses a setting that is not above 0.
    """
    least = frame.groupby([*groups])["L"].transform("min")
    near = frame["L"] <= (1 + TOLERANCE) * least
    mask, rows = near.copy(), frame[near]
    for name in settings:
        values = rows[name].astype(float)
        if not (values > 0).all():
            raise UserError(f"column {name} holds {values.min():g}; it must be above 0")
        logs = pd.Series(np.log(values), values.index)
        scores = logs.groupby([rows[key] for key in groups]).transform(modified_z)
        mask[near] &= ~(scores.abs() > OUTLIER)
    return mask.rename("near_optimal")


def modified_z(x: pd.Series) -> pd.Series:
    """Returns the modified z-scores of ``x`` (n,), which the outliers themselves hardly move.

    A score is the distance from the median over the median absolute deviation / .6745 or, where
    more than half of the values are equal, over 1.2533 times the mean absolute deviation. Scores
    are 0 where all values are equal. Source: Iglewicz and Hoaglin 1993.
    """
    from_median = x - x.median()
    mad, mean = from_median.abs().median(), from_median.abs().mean()
    # Equal logarithms differ by exactly 0; a spread as small as rounding errors counts as none.
    scale = mad / 0.6745 if mad > 1e-12 else 1.2533 * mean
    return from_median / scale if scale > 1e-12 else from_median * 0.0


def by(optimizer: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the ``runs`` by an optimizer; tables of older versions have AdamW alone."""
    return runs[runs.get("optimizer", pd.Series("adamw", runs.index)).fillna("adamw") == optimizer]


SWEEPS = ("moe", "dense", "activation")
SETTINGS = ("lr", "batch_tokens")
GROUPS = ["A", "C"]  # losses are compared within one budget of one architecture
WORDS = {"lr": "learning rate", "batch_tokens": "batch"}


@table(
    *of_runs("run_id", "kind", "A", "E", "k", "C", "lr", "batch_tokens", "L"),
    Column("excess", "float", "loss over the least of the same A and C, less 1"),
    Column("near", "int", "1: excess within the tolerance, and no outlier; 0: not"),
    Column("tolerance", "float", "of the excess (leverage, App E.1)"),
    Column("seed_sd", "float?", "spread of L between seeds in this study", "nats/token"),
    Column("ends", "string", "of the best run of an A and C: settings at an end of those tried"),
    told={
        "ends != ''": "A={A:.3g}, C={C:.3g}: the best run has {ends} tried: a bound, no optimum",
        "seed_sd.isna()": "no run was repeated with another seed: what is chance is not known",
        "1.41 * seed_sd > tolerance * L.min()": "runs that differ in their seed alone differ by "
        "more than the tolerance: which runs are near-optimal is partly chance",
    },
)
def derive(inputs: Inputs, optimizer: str = "adamw") -> Rows:
    """Returns a row for each completed run of the study's searches by one ``optimizer``."""
    table = by(optimizer, inputs.completed)
    searched = np.logical_or.reduce([in_sweep(table, name) for name in SWEEPS])
    frame = table[searched].reset_index(drop=True)
    frame["near"] = near_optimal(frame, SETTINGS, GROUPS).astype(int)
    frame["excess"] = frame["L"] / frame.groupby(GROUPS)["L"].transform("min") - 1
    frame["kind"] = np.where(frame["A"] == 1, "dense", "moe")
    frame["tolerance"] = TOLERANCE
    frame["seed_sd"], frame["ends"] = seed_sd(table), ""
    for _, rows in frame.groupby(GROUPS):
        ends = [f"{end} {WORDS[name]}" for name in SETTINGS if (end := end_of_search(rows, name))]
        frame.loc[rows["L"].idxmin(), "ends"] = " and ".join(ends)
    return frame.sort_values(["A", "C", "lr", "batch_tokens"], ignore_index=True)


def end_of_search(group: pd.DataFrame, setting: str) -> str:
    """Returns the end of the values tried at which the best run of one (A, C) lies, or nothing."""
    tried = group[setting]
    ends = {tried.max(): "the highest", tried.min(): "the lowest"}
    return ends.get(tried.iloc[int(np.argmin(group["L"]))], "")


SIZE_SWEEPS = {"moe": "moe_sizes", "dense": "dense_sizes"}


@table(
    *of_runs("kind", "A", "C"),
    Column("M_argmin", "float", "scale of the run of least loss", "FLOP/token"),
    Column("D_argmin", "float", "training tokens of the run of least loss", "tokens"),
    *estimated("M_star", "minimum of a parabola in ln M in the measured range", "FLOP/token", "M"),
    *estimated("D_star", "C / M_star", "tokens", "D"),
    INSIDE,
    Column("end", "bool", "the run of least loss has the least or the largest size tried"),
    RUNS,
    NOTE,
    told={
        "note != ''": "{kind}, C={C:.3g}: no minimum of the loss inside the sizes measured: {note}"
    },
)
def best_sizes(inputs: Inputs, optimizer: str = "adamw") -> Rows:
    """Yields the best size of each budget and kind of model, by least loss and by a parabola.

    Size is the model's scale M, its training FLOPs per token without logits, so that C = M D.
    Source: leverage, App E.2.
    """
    for kind, sweep in SIZE_SWEEPS.items():
        rows = by(optimizer, inputs.sweep(sweep)).reset_index(drop=True)
        rows = rows.assign(M=rows["C_leverage_no_router"] / rows["D"])
        for C, group in rows.groupby("C"):
            best, M = group.iloc[int(np.argmin(group["L"]))], group["M"]
            row: Row = {
                "kind": kind,
                "A": best["A"],
                "C": C,
                "M_argmin": best["M"],
                "D_argmin": best["D"],
                "inside": False,
                "end": bool(best["M"] in (M.min(), M.max())),
                "n": len(group),
                "note": TOO_FEW,
            }
            if lowest := parabola_minima(np.log(M), group["L"]):
                M_star = of_draws(np.exp(lowest.x))
                row |= {"M_star": M_star, "D_star": M_star.map(partial(np.divide, C))}
                row |= {"inside": bool(lowest.inside[0]), "note": lowest.notes[0]}
            yield row
