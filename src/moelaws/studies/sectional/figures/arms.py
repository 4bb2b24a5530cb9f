"""The loss of each arm beside the dense model's, and how an arm is drawn everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, DENSE, SIZE

_COLOURS = [colormaps["tab10"](i) for i in (0, 1, 2, 3, 4, 5, 6, 8)]
LOOKS = dict(zip(ARMS, [style.INK, style.GREY, *_COLOURS], strict=True))


def draw(inputs: Inputs) -> Sheet:
    """Draws the difference to the dense model by arm, a panel for each size."""
    table = inputs.derived("arms")
    sizes = [rows for _, rows in table.groupby(SIZE)]
    sheet = Sheet(style.DOUBLE, 3.6, ["rectilinear"] * len(sizes))
    for panel, rows in zip(sheet.panels, sizes, strict=True):
        _draw(panel, rows)
        panel.ax.set_title(size_title(panel, rows, len(sizes)), loc="left")
        panel.ax.set_xlabel("loss less the dense model's (nats/token)")
    return sheet


def _draw(panel: Panel, rows: pd.DataFrame) -> None:
    shown = rows[rows["arm"] != DENSE].reset_index(drop=True)
    panel.ax.axvline(0, color=style.INK, linewidth=0.8)
    for place, row in shown.iterrows():
        y, colour = -int(str(place)), LOOKS[row["arm"]]
        ends = {"low": [row["low"]], "high": [row["high"]]}
        panel.sheet.record(panel.name, name_of(row), x=[y], y=[row["difference"]], **ends)
        panel.ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.2)
        filled = colour if row["n_seeds"] > 1 else "white"
        panel.ax.plot(row["difference"], y, "o", color=colour, markerfacecolor=filled)
    panel.ax.set_yticks(-np.arange(len(shown)), [name_of(row) for _, row in shown.iterrows()])
    panel.ax.grid(axis="y", visible=False)


def name_of(row: pd.Series) -> str:
    """Returns the name of a row of the table of arms: the arm and what it was given."""
    name = ARMS[row["arm"]]
    if row["arm"].startswith("slice"):
        return f"{name}, $E$ = {row['E']}"
    if row["arm"] in ("by_layer", "both"):
        return f"{name}, {row['n_dense_layers']} dense"
    return name


def size_title(panel: Panel, rows: pd.DataFrame, sizes: int) -> str:
    """Returns the title of a size's panel."""
    d, n = int(rows["d_model"].iloc[0]), int(rows["context"].iloc[0])
    return f"({panel.name}) $d$ = {d}, {n} positions" if sizes > 1 else ""
