"""The loss of each arm beside the dense model's, and how an arm is drawn everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, DENSE, DIVIDED, SHAPE, SIZE, SLICES

_COLOURS = [colormaps["tab10"](i) for i in (0, 1, 2, 3, 4, 5, 6, 9, 8)]
MARKS = ("o", "s", "^", "D", "v", "P")  # of sizes
LOOKS = dict(zip(ARMS, [style.INK, style.GREY, *_COLOURS], strict=True))


def draw(inputs: Inputs) -> Sheet:
    """Draws the difference to the dense model by arm, a panel for each size."""
    table = inputs.derived("arms")
    shown = table[table["arm"] != DENSE].assign(name=lambda t: [name_of(row) for row in rows_of(t)])
    order = shown.assign(place=shown["arm"].map(list(ARMS).index))
    names = list(order.sort_values(["place", *SHAPE], kind="stable")["name"].unique())
    sizes = [rows for _, rows in shown.groupby(SIZE)]
    sheet = Sheet(style.DOUBLE, 3.6, ["rectilinear"] * max(1, len(sizes)))
    for panel, rows in zip(sheet.panels, sizes, strict=False):
        _draw(panel, rows, names)
        panel.ax.set_title(size_title(panel, rows, "\n" if len(sizes) > 2 else " "), loc="left")
        if panel is not sheet.panels[0]:
            panel.ax.sharex(sheet.panels[0].ax)
            panel.ax.tick_params(labelleft=False)  # the names stand left of the first
    sheet.figure.supxlabel("loss less the dense model's (nats/token)", fontsize=8)
    return sheet


def _draw(panel: Panel, rows: pd.DataFrame, names: list[str]) -> None:
    panel.ax.axvline(0, color=style.INK, linewidth=0.8)
    for row in rows_of(rows):
        y, colour = -names.index(row["name"]), LOOKS[row["arm"]]
        ends = {"low": [row["low"]], "high": [row["high"]]}
        panel.sheet.record(panel.name, row["name"], x=[y], y=[row["difference"]], **ends)
        panel.ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.2)
        filled = colour if row["n_seeds"] > 1 else "white"
        panel.ax.plot(row["difference"], y, "o", color=colour, markerfacecolor=filled)
    panel.ax.set_yticks(-np.arange(len(names)), names)
    panel.ax.grid(axis="y", visible=False)


def rows_of(table: pd.DataFrame) -> list[pd.Series]:
    """Returns the rows of a table, in order."""
    return [row for _, row in table.iterrows()]


def name_of(row: pd.Series) -> str:
    """Returns the name of a row of the table of arms: the arm and what it was given."""
    name = ARMS[row["arm"]]
    if row["arm"] in SLICES:
        return f"{name}, $E$ = {row['E']}"
    if row["n_dense_layers"] and row["arm"] in DIVIDED:
        return f"{name}, {row['n_dense_layers']} dense"
    return name


def size_title(panel: Panel, rows: pd.DataFrame, between: str = " ") -> str:
    """Returns the title of a panel of one size; ``between`` is a line's end in narrow panels."""
    return f"({panel.name}) {size_name(rows, between)}"


def size_name(rows: pd.DataFrame, between: str = " ") -> str:
    """Returns the name of the size that all rows share."""
    d, n = int(rows["d_model"].iloc[0]), int(rows["context"].iloc[0])
    return f"$d$ = {d},{between}{n} positions"
