"""What the sparsity paper claims, measured by slopes of the optima and by held-out errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.predictions import excess, predicted, rmse
from moelaws.claims.base import Evidence


def trend(inputs: Inputs, name: str) -> Evidence:
    """Returns the mean slope of the trend ``name`` over budgets or sparsities."""
    mean, each = _slopes(inputs, name)
    return _evidence(
        mean,
        each,
        f"slope {_interval(mean)} {mean['unit']}, the mean of {mean['n']} ({_listed(each)})",
    )


def loss_falls(inputs: Inputs) -> Evidence:
    """Returns the slope of L* over sparsity; those of all budgets decide, not their mean."""
    mean, each = _slopes(inputs, "L_over_S")
    evidence = _evidence(
        mean,
        each,
        f"slope {_interval(mean)} {mean['unit']} on average; at each budget: {_listed(each)}",
    )
    if not evidence.intervals:
        return evidence
    return replace(evidence, decides=list(zip(each["low"], each["high"], strict=True)))


def predicts_unseen(inputs: FittedInputs) -> Evidence:
    """Returns by how much Chinchilla's error exceeds that of Eq 6 on the runs that both hold out.

    The interval resamples the runs and the draws of both fits.
    """
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


def _slopes(inputs: Inputs, trend: str) -> tuple[pd.Series, pd.DataFrame]:
    """The mean slope of a ``trend`` and the slopes behind it, a row each."""
    table = inputs.derived("trends")
    rows = table[table["trend"] == trend]
    return rows[rows["at"] == "mean"].iloc[0], rows[rows["at"] != "mean"]


def _evidence(mean: pd.Series, each: pd.DataFrame, measured: str) -> Evidence:
    """The ``mean`` slope as evidence; where it has no interval, the reasons why."""
    if not np.isfinite(mean["low"]):
        reasons = [f"{row['at']}: {row['note']}" for _, row in each.iterrows() if row["note"]]
        return Evidence(
            "; ".join(reasons) or "the surfaces have no draws: too few runs for an interval"
        )
    slope, low, high = (float(mean[name]) for name in ("slope", "low", "high"))
    return Evidence(measured, slope, low, high, str(mean["unit"]))


def _interval(row: pd.Series) -> str:
    return f"{row['slope']:.2g} [{row['low']:.2g}, {row['high']:.2g}]"


def _listed(slopes: pd.DataFrame) -> str:
    texts = (f"{row['at']}: {row['note'] or _interval(row)}" for _, row in slopes.iterrows())
    return "; ".join(texts)
