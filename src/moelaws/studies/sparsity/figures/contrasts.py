"""What sparsity gains at equal budget, width and seed, with the error of the difference itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.transforms import offset_copy

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet

COLUMNS = 3
MARGIN = 0.1  # of the range
APART = 1.7  # points between the marks of two widths at one sparsity


def draw(inputs: Inputs) -> Sheet:
    """Draws a panel for each budget: each sparse run's loss less that of the densest one."""
    table = inputs.derived("contrasts")
    densest = table["S_against"] == table["S_against"].min()
    table = table[densest]
    budgets = sorted(table["C"].unique())
    panels = max(1, len(budgets))
    width = style.DOUBLE if panels > 1 else style.SINGLE
    height = style.HEIGHT * -(-panels // COLUMNS)
    sheet = Sheet(width, height, ["rectilinear"] * panels, min(panels, COLUMNS))
    if not budgets:
        sheet.panels[0].message("no two completed runs of a budget\ndiffer in sparsity alone")
        return sheet
    if not densest.all():
        sheet.warn(f"{(~densest).sum()} contrasts are left out: their densest run is missing")
    palette = style.palette(table["d_model"])
    for panel, C in zip(sheet.panels, budgets, strict=True):
        _draw_budget(panel, at(table, "C", C), palette)
        name = f"({panel.name}) " if len(budgets) > 1 else ""
        panel.ax.set_title(f"{name}$C$ = {style.power(C)}", loc="left")
    for panel in sheet.panels[::COLUMNS]:
        panel.ax.set_ylabel("loss less that of the\ndensest run (nats/token)")
    for d, colour in palette.items():
        sheet.panels[-1].ax.plot([], [], "o", color=colour, label=f"{d:g}")
    sheet.panels[-1].legend("width $d$")
    return sheet


def _draw_budget(panel: Panel, rows: pd.DataFrame, palette: dict[float, style.Colour]) -> None:
    """Draws one budget: the spread between seeds as a band, and runs by width and seed."""
    S = np.array(sorted({*rows["S"], *rows["S_against"]}))
    style.sparsity_axis(panel.ax, S)
    v = -np.log1p(-S[[0, -1]]) + np.array([-MARGIN, MARGIN]) * np.ptp(-np.log1p(-S))
    panel.ax.set_xlim(-np.expm1(-v))  # room for the marks beside the ends
    spread = float(rows["seed_se"].max())
    zero = np.zeros(len(S))
    band = {"low": zero - spread, "high": zero + spread} if np.isfinite(spread) else {}
    panel.line("spread between seeds", S, zero, **band, color=style.GREY, linewidth=0.8)
    # One kind of error in a panel: unpaired ones may be ten times as large.
    error = error_among(rows, "paired_se", "unpaired_se")
    groups = list(rows.groupby(["d_model", "seed"]))
    for place, (_, group) in enumerate(groups):
        d, seed = (float(group[name].iloc[0]) for name in ("d_model", "seed"))
        shift = APART * (place - (len(groups) - 1) / 2)
        colour = palette[d]
        panel.points(
            f"d={d:g}, seed {seed:g}",
            group["S"],
            group["difference"],
            **bars(group, error, "difference"),
            color=colour,
            markerfacecolor=colour if seed == rows["seed"].min() else "white",
            markersize=3,
            transform=offset_copy(panel.ax.transData, panel.sheet.figure, shift, units="points"),
        )
