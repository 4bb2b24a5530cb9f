"""What sparsity gains by FLOPs beside what it gains by the time that training took."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Sheet
from moelaws.studies.sparsity.figures.common import BUDGET, colours

LONG = 360.0  # seconds: longer trainings are shown in hours


def draw(inputs: Inputs) -> Sheet:
    """Draws the best run of each budget and sparsity: its loss over FLOPs, and over time.

    Time is tokens over tokens per second in the median step, so that evaluation, the start of
    processes and stops do not count.
    """
    best = best_runs(inputs.completed)
    hours = best["seconds"].max() > LONG
    best["time"] = best["seconds"] / (3600 if hours else 1)
    time_label = f"training time ({'hours' if hours else 'seconds'})"
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    palette = colours(inputs, "S")
    for panel, x, label in zip(sheet.panels, ("C", "time"), (BUDGET, time_label), strict=True):
        for S, colour in palette.items():
            rows = best[best["S"] == S]
            ends = bars(rows, error_among(best))
            panel.line(f"S={S:.4g}", rows[x], rows["L"], color=colour, linewidth=0.8)
            panel.points(f"S={S:.4g}", rows[x], rows["L"], **ends, color=colour, label=f"{S:.4g}")
        panel.ax.set_xscale("log")
        panel.ax.set_xlabel(label)
    budgets = sorted(best["C"].unique())
    style.fixed_ticks(sheet.panels[0].ax.xaxis, budgets, style.power)
    if best["time"].notna().any():
        ticks = style.round_ticks(float(best["time"].min()), float(best["time"].max()), 4)
        style.fixed_ticks(sheet.panels[1].ax.xaxis, ticks, "{:.3g}".format)
    sheet.panels[0].ax.set_ylabel("loss (nats/token)")
    sheet.panels[-1].legend("sparsity $S$")
    if best["time"].isna().any():
        sheet.warn("some runs have no tokens_per_second; their training time is not shown")
    return sheet


def best_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the run of least loss of each budget and sparsity, with its loop's ``seconds``."""
    named = runs[runs["C"].notna()]
    best = named.loc[named.groupby(["C", "S"])["L"].idxmin()].sort_values(["S", "C"])
    return best.assign(seconds=best["D"] / best["tokens_per_second"].replace(0, np.nan))
