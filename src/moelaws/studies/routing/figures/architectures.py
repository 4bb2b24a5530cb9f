"""More active experts and other shares of routed layers, with a law that knows both."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.routing.figures.common import line
from moelaws.studies.routing.figures.looks import LOSS, POINT

SIZES = ("25M", "370M")
# Rows of panels: what varies, and of which fit.
ROWS = (("k", "s_base_all"), ("routing_frequency", "s_base_all"), ("routing_frequency", "hash_all"))
NAMES = {"s_base_all": "S-Base", "hash_all": "Hash"}
# Of the 8 layers of the 25M models and of the 12 of the 370M ones; below a quarter it is one layer.
SHARES = {0.25: "a quarter", 0.5: "half", 1.0: "all"}


def draw(inputs: FittedInputs) -> Sheet:
    """Draws losses over experts by k and by the share of routed layers, with the fitted form."""
    sheet = Sheet(style.DOUBLE, 5.6, ["rectilinear"] * 6, columns=2)
    for i, (column, fit) in enumerate(ROWS):
        runs = inputs.rows(fit)
        runs = runs[runs["router"] != "Dense"]
        fixed = runs["routing_frequency"] == 0.5 if column == "k" else runs["k"] == 1
        for panel, size in zip(sheet.panels[2 * i : 2 * i + 2], SIZES, strict=True):
            _draw_panel(panel, inputs, fit, runs[fixed & (runs["size"] == size)], column)
            panel.ax.set_title(f"({panel.name}) {NAMES[fit]}, {size} base parameters", loc="left")
        what = "active experts $k$" if column == "k" else "routed layers"
        sheet.panels[2 * i + 1].legend(what)
        sheet.panels[2 * i].ax.set_ylabel(LOSS)
    for panel in sheet.panels[-2:]:
        panel.ax.set_xlabel("experts $E$")
    return sheet


def _draw_panel(
    panel: Panel, inputs: FittedInputs, fit: str, runs: pd.DataFrame, column: str
) -> None:
    runs = runs[runs["E"].isin([8, 64, 256])].sort_values("E")
    for value, colour in style.palette(runs[column]).items():
        own = runs[runs[column] == value]
        label = f"{value:g}" if column == "k" else SHARES.get(value, "one")
        law = line(inputs, fit, N_active=own["N_active_nonemb"], E=own["utilisation"])
        panel.line(f"law, {label}", own["E"], law, color=colour, lw=0.9)
        panel.points(label, own["E"], own["L"], color=colour, label=label, **POINT)
    panel.ax.set_xscale("log", base=2)
    style.fixed_ticks(panel.ax.xaxis, [8, 64, 256])
    panel.ax.set_xlim(6, 340)
