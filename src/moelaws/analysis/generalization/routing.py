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

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.tables.column import Column
from moelaws.tables.sweeps import in_sweep

LEVEL = 0.9
DRAWS = 4000
FEW, MANY = "fewer experts", "more experts"

COLUMNS = (
    Column("part", "string", "1", "fewer or more experts than the middle M of each series"),
    Column("D", "float", "tokens", "training tokens; missing: all budgets together", True),
    Column("slope", "float", "nats/token", "change of the loss with ln M at fixed k and D", True),
    Column("slope_low", "float", "nats/token", "lower end of its interval", True),
    Column("slope_high", "float", "nats/token", "upper end of its interval", True),
    Column("level", "float", "1", "coverage: Student t, normal errors of one spread"),
    Column("n", "int", "1", "runs behind it"),
    Column("series", "int", "1", "pairs of k and D, each with a loss of its own at M = 1"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the runs of the sweep ``routing``."""
    runs = inputs.derived("runs")
    runs = runs[in_sweep(runs, "routing")]
    records: list[dict[str, Any]] = []
    for D in (float("nan"), *sorted(runs["D"].unique())):
        rows = runs if np.isnan(D) else runs[runs["D"] == D]
        for part in (FEW, MANY):
            records.append({"part": part, "D": D, **_slope(pd.concat(_halves(rows, part)))})
    return pd.DataFrame(records, columns=[column.name for column in COLUMNS])


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line where the runs do not tell the sign of a slope, all budgets together."""
    rows = frame[frame["D"].isna() & ~((frame["slope_low"] > 0) | (frame["slope_high"] < 0))]
    return [
        f"routing, {row.part}: the sign of the loss's change with ln M is not told "
        f"({row.slope:.3g}, {row.slope_low:.3g} to {row.slope_high:.3g} nats, n = {row.n})"
        for row in rows.itertuples()
    ]


def _halves(rows: pd.DataFrame, part: str) -> Iterator[pd.DataFrame]:
    """Of each series the runs up to its middle M, or from there on; the middle is in both."""
    yield rows.iloc[:0]
    for _, series in rows.groupby(["k", "D"]):
        experts = np.sort(series["M"].unique())
        middle = experts[len(experts) // 2]
        yield series[series["M"] <= middle if part == FEW else series["M"] >= middle]


def _slope(rows: pd.DataFrame) -> dict[str, Any]:
    """Least squares of L on ln M with an intercept for each series, and Student-t draws."""
    groups = rows.groupby(["k", "D"])
    ln_M = pd.Series(np.log(rows["M"].to_numpy(float)), rows.index)
    x = (ln_M - ln_M.groupby([rows["k"], rows["D"]]).transform("mean")).to_numpy()
    y = (rows["L"] - groups["L"].transform("mean")).to_numpy(float)
    freedom, spread = len(rows) - groups.ngroups - 1, float(x @ x)
    nan = float("nan")
    slope = float(x @ y) / spread if spread > 0 else nan
    low = high = nan
    if freedom > 0 and spread > 0:
        error = float(np.sqrt(np.sum((y - slope * x) ** 2) / freedom / spread))
        low, high = percentile_interval(slope + error * _student(freedom), LEVEL)
    return {
        "slope": slope,
        "slope_low": low,
        "slope_high": high,
        "level": LEVEL,
        "n": len(rows),
        "series": groups.ngroups,
    }


def _student(freedom: int) -> Array:
    rng = np.random.default_rng(0)
    return np.asarray(rng.standard_t(freedom, DRAWS))
