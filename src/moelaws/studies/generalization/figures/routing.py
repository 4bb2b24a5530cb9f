"""F1: validation loss over the routing term R, for (M, k) at the budgets of the routing sweep."""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet
from moelaws.tables.sweeps import in_sweep


def draw(inputs: Inputs) -> Sheet:
    """Draws a panel for the least and the largest budget, with a line for each k.

    M stands beside each point.
    """
    runs = inputs.derived("runs")
    runs = runs[in_sweep(runs, "routing")]
    budgets = sorted(float(D) for D in runs["D"].unique())
    budgets = budgets if len(budgets) < 3 else [budgets[0], budgets[-1]]
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * max(len(budgets), 1))
    active = sorted(int(k) for k in runs["k"].unique())
    for panel, D in zip(sheet.panels, budgets, strict=False):
        rows = runs[runs["D"] == D]
        for k, colour in zip(active, style.ordered_colours(len(active)), strict=True):
            _series(panel, rows[rows["k"] == k], k, colour, error_among(rows))
        letter = f"({panel.name}) " if len(budgets) > 1 else ""
        panel.ax.set_title(f"{letter}$D$ = {style.short(D)} tokens", loc="left")
        panel.ax.set_xlabel(r"routing term $R = k L_T\,l\,\ln(eM/k)$ (nats)")
        panel.ax.set_ylabel("validation loss (nats/token)")
        panel.ax.margins(0.08, 0.14)
    if not budgets:
        sheet.panels[0].message("no completed run of the sweep routing")
    sheet.panels[-1].legend("active\nexperts $k$")
    return sheet


def _series(panel: Panel, rows: pd.DataFrame, k: int, colour: Any, error: str) -> None:
    """Draws one k at one budget: the means over seeds, joined in the order of M."""
    if not len(rows):
        return
    mean = rows[["M", "R", "L", error]].groupby("M", as_index=False).mean()
    panel.ax.plot(mean["R"], mean["L"], color=colour, linewidth=0.9, zorder=2)
    ends = bars(mean, error)
    panel.points(f"k={k}", mean["R"], mean["L"], **ends, color=colour, label=f"{k}", zorder=3)
    for row in mean.itertuples():
        panel.ax.annotate(
            f"{row.M}",
            (row.R, row.L),
            textcoords="offset points",
            xytext=(4, 3),
            fontsize=5.5,
            color=style.INK,
        )
