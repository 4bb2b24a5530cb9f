"""The best granularity and shares of shared experts, dense layers and attention, by a parabola."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs, at
from moelaws.studies.leverage.derived.series import SERIES, Series
from moelaws.tables.column import Column

SWEEPS = ("granularity", "granularity_weak", "shared", "dense_layers", "attention")
LEVEL = 0.9
TOO_FEW = "fewer than three values"


@table(
    Column("sweep", "string", "1", "the study's sweep"),
    Column("C", "float", "FLOP", "training budget; missing where all are pooled", True),
    Column("x_star", "float", "1", "value of least loss in the range measured", True),
    Column("x_low", "float", "1", "lower end of its interval, Student t", True),
    Column("x_high", "float", "1", "upper end of its interval, Student t", True),
    Column("level", "float", "1", "coverage of the interval"),
    Column("inside", "bool", "1", "the least loss is inside the range measured; else a bound"),
    Column("n", "int", "1", "completed runs"),
    Column("note", "string", "1", "why it is not inside; empty where it is"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row over all budgets of each sweep that has runs, and one for each budget."""
    records = []
    for name in SWEEPS:
        series = SERIES[name]
        runs = series.runs(inputs)
        if not len(runs):
            continue
        records.append(_optimum(series, runs, float("nan")))
        records += [_optimum(series, at(runs, "C", C), C) for C in sorted(runs["C"].unique())]
    return records


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Names each sweep without an optimum inside the range measured over all budgets."""
    pooled = frame[frame["C"].isna() & (frame["note"] != "")]
    return [f"{row.sweep}: no optimum over all budgets: {row.note}" for row in pooled.itertuples()]


def _optimum(series: Series, runs: pd.DataFrame, C: float) -> dict[str, Any]:
    base = {"sweep": series.sweep, "C": C, "level": LEVEL, "n": len(runs), "inside": False}
    parabola = series.parabola(runs)
    if parabola is None:
        return {**base, "note": TOO_FEW}
    best = parabola.optimum()
    ends = (float(best.x[0]), *parabola.optimum_interval(LEVEL))
    x_star, x_low, x_high = np.exp2(ends) if series.log2 else np.array(ends)
    return {
        **base,
        "x_star": float(x_star),
        "x_low": float(x_low),
        "x_high": float(x_high),
        "inside": bool(best.inside[0]),
        "note": best.notes[0],
    }
