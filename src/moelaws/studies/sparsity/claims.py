"""Claims of the sparsity paper, measured by slopes of the optima and by held-out errors."""

from dataclasses import replace

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.predictions import excess, predicted, rmse
from moelaws.analysis.scores import GROUP
from moelaws.claims.base import Evidence

READING = "reading comprehension"  # a group of tasks
EXAMPLE = "olmo:boolq/rc_0shot"  # a task of that group


def trend(inputs: Inputs, name: str) -> Evidence:
    """Returns the mean slope of the trend ``name`` over budgets or sparsities."""
    mean, each = _slopes(inputs, name)
    measured = f"slope {_interval(mean)} {mean['unit']}, the mean of {mean['n']} ({_listed(each)})"
    return _evidence(mean, each, measured)


def loss_falls(inputs: Inputs) -> Evidence:
    """Returns the slope of L* over sparsity; those of all budgets decide, not their mean."""
    mean, each = _slopes(inputs, "L_over_S")
    slope = f"slope {_interval(mean)} {mean['unit']} on average"
    evidence = _evidence(mean, each, f"{slope}; at each budget: {_listed(each)}")
    if not evidence.intervals:
        return evidence
    return replace(evidence, decides=list(zip(each["low"], each["high"], strict=True)))


def predicts_unseen(inputs: FittedInputs) -> Evidence:
    """Returns Chinchilla's error less that of Eq 6 on the runs that both hold out."""
    holdout = inputs.spec("loss").holdout
    own, other = (predicted(inputs, fit, inputs.table) for fit in ("loss", "chinchilla"))
    more = excess(other, own, inputs.fit("loss").level)
    if np.isnan(more.low):
        return Evidence(f"{more.n} runs are held out ({holdout or 'nothing'})")
    return Evidence(
        f"RMSE on the {more.n} runs with {holdout}: {rmse(own, own.held):.3g} nats/token by Eq 6, "
        f"{rmse(other, other.held):.3g} by Chinchilla in N_a and D; difference {more.value:.2g} "
        f"[{more.low:.2g}, {more.high:.2g}]",
        *more.interval,
        "nats/token",
    )


def equal_at_equal_loss(inputs: Inputs, reading: bool) -> Evidence:
    """Returns the effect of sparsity on scores at equal loss, as a rise of the loss.

    Each group of tasks decides by itself: reading comprehension, or all others.
    """
    table = inputs.derived("relation")
    groups = table[(table["by"] == GROUP) & (table["measure"] == "bits_per_byte")]
    groups = groups[(groups["group"] == READING) == reading]
    if not len(groups):
        return Evidence(
            f"no task of {READING} was asked" if reading else "no task was asked",
            needed="tasks of that kind in config.yaml, such as tasks: "
            f"[held-out, {EXAMPLE if reading else 'olmo:hellaswag/rc_0shot'}]",
        )
    known = groups[groups["equivalent"].notna()]
    measured = "; ".join(
        f"{row['skill']}: {row['note']}"
        if row["note"]
        else f"{row['skill']}: {row['equivalent']:.2g} [{row['equivalent_low']:.2g}, "
        f"{row['equivalent_high']:.2g}] nats from S = {row['S_densest']:.3g} to "
        f"{row['S_sparsest']:.3g} ({row['n']} runs)"
        for _, row in groups.iterrows()
    )
    if len(known) < len(groups):
        return Evidence(measured)
    ends = known[["equivalent", "equivalent_low", "equivalent_high"]].to_numpy(float)
    value, low, high = ends[np.abs(ends[:, 0]).argmax()].tolist()  # of the group farthest from 0
    decides = [(float(a), float(b)) for a, b in ends[:, 1:]]
    return Evidence(measured, value, low, high, "nats/token", decides)


def _slopes(inputs: Inputs, trend: str) -> tuple[pd.Series, pd.DataFrame]:
    """Returns the mean slope of a ``trend``, and a row for each of the slopes behind it."""
    table = inputs.derived("trends")
    rows = table[table["trend"] == trend]
    return rows[rows["at"] == "mean"].iloc[0], rows[rows["at"] != "mean"]


def _evidence(mean: pd.Series, each: pd.DataFrame, measured: str) -> Evidence:
    """Returns the ``mean`` slope as evidence, or the reasons why it has no interval."""
    if not np.isfinite(mean["low"]):
        reasons = [f"{row['at']}: {row['note']}" for _, row in each.iterrows() if row["note"]]
        nothing = "the surfaces have no draws: too few runs for an interval"
        return Evidence("; ".join(reasons) or nothing)
    slope, low, high = (float(mean[name]) for name in ("slope", "low", "high"))
    return Evidence(measured, slope, low, high, str(mean["unit"]))


def _interval(row: pd.Series) -> str:
    return f"{row['slope']:.2g} [{row['low']:.2g}, {row['high']:.2g}]"


def _listed(slopes: pd.DataFrame) -> str:
    texts = (f"{row['at']}: {row['note'] or _interval(row)}" for _, row in slopes.iterrows())
    return "; ".join(texts)
