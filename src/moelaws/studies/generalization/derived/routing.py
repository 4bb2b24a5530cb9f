"""How the loss moves with the routing term: with the number of experts at fixed k and budget.

At fixed k the routing term R = k L l (1 + ln(M/k)) is linear in ln M, so that a slope over ln M is
one over R. Each series of one k and one budget is cut at its middle M: the moderate regime below,
where the bound says that the loss rises, and the one of many experts above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.quantiles import t_interval
from moelaws.tables.column import Column
from moelaws.tables.sweeps import in_sweep

LEVEL = 0.9
FEW, MANY = "fewer experts", "more experts"
SERIES = ["k", "D"]


@table(
    Column("part", "string", "1", "fewer or more experts than the middle M of each series"),
    Column("D", "float", "tokens", "training tokens; missing: all budgets together", True),
    Column("slope", "float", "nats/token", "change of the loss with ln M at fixed k and D", True),
    Column("slope_low", "float", "nats/token", "lower end of its interval", True),
    Column("slope_high", "float", "nats/token", "upper end of its interval", True),
    Column("level", "float", "1", "coverage: Student t, normal errors of one spread"),
    Column("n", "int", "1", "runs behind it"),
    Column("series", "int", "1", "pairs of k and D, each with a loss of its own at M = 1"),
)
def derive(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Gives a row for each half of the sweep ``routing``, over all budgets and at each of them."""
    runs = inputs.derived("runs")
    runs = runs[in_sweep(runs, "routing")].sort_values(SERIES, kind="stable")
    for D in (float("nan"), *sorted(runs["D"].unique())):
        rows = runs if np.isnan(D) else runs[runs["D"] == D]
        for half in (FEW, MANY):
            yield {"part": half, "D": D, **_slope(_half(rows, half))}


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where the runs of all budgets do not tell the sign of a slope."""
    rows = frame[frame["D"].isna() & ~((frame["slope_low"] > 0) | (frame["slope_high"] < 0))]
    return [
        f"routing, {row.part}: the sign of the loss's change with ln M is not told "
        f"({row.slope:.3g}, {row.slope_low:.3g} to {row.slope_high:.3g} nats, n = {row.n})"
        for row in rows.itertuples()
    ]


def _half(rows: pd.DataFrame, half: str) -> pd.DataFrame:
    """Keeps of each series the runs up to its middle M, or from there on; both keep the middle."""
    middle = rows.groupby(SERIES)["M"].transform(lambda M: np.sort(M.unique())[M.nunique() // 2])
    return rows[rows["M"] <= middle] if half == FEW else rows[rows["M"] >= middle]


def _slope(rows: pd.DataFrame) -> dict[str, Any]:
    """Fits L on ln M by least squares, with an intercept for each series and Student-t draws."""
    groups = rows.groupby(SERIES)
    ln_M = pd.Series(np.log(rows["M"].to_numpy(float)), rows.index)
    x = (ln_M - ln_M.groupby([rows[name] for name in SERIES]).transform("mean")).to_numpy()
    y = (rows["L"] - groups["L"].transform("mean")).to_numpy(float)
    freedom, spread = len(rows) - groups.ngroups - 1, float(x @ x)
    slope = float(x @ y) / spread if spread > 0 else float("nan")
    low = high = float("nan")
    if freedom > 0 and spread > 0:
        error = float(np.sqrt(np.sum((y - slope * x) ** 2) / freedom / spread))
        low, high = t_interval(slope, error, freedom, LEVEL)
    return {
        "slope": slope,
        "slope_low": low,
        "slope_high": high,
        "level": LEVEL,
        "n": len(rows),
        "series": groups.ngroups,
    }
