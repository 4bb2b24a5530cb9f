"""What a training step of each arm takes beside the dense model's: time and memory."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, SIZE, widest
from moelaws.studies.sectional.figures.arms import LOOKS, MARKS, name_of, size_name, size_title

PARTS = {
    "state_bytes": ("model, optimizer", style.INK),
    "activation_bytes": ("activations", style.GREY),
}


def draw(inputs: Inputs) -> Sheet:
    """Draws the time of each arm at every size (a), and the memory of the widest model's (b)."""
    table = inputs.derived("speeds").rename(columns={"sweep": "arm"})
    table = table[table["arm"].isin(ARMS)]
    table = table.assign(order=[list(ARMS).index(arm) for arm in table["arm"]])
    table = table.sort_values(["order", "E", "n_dense_layers"], kind="stable")
    table = table.assign(name=[name_of(row) for _, row in table.iterrows()])
    names = list(table["name"].unique())
    table = table.assign(y=[-names.index(name) for name in table["name"]])
    sheet = Sheet(style.DOUBLE, 3.6, ["rectilinear"] * 2)
    times, memory = sheet.panels
    _times(times, table)
    times.ax.set_yticks(-np.arange(len(names)), names)
    shown = widest(table)
    _memory(memory, shown)
    memory.ax.set_ylim(times.ax.get_ylim())
    memory.ax.set_yticks(-np.arange(len(names)), [""] * len(names))
    if len(shown):
        memory.ax.set_title(size_title(memory, shown), loc="left")
    return sheet


def _times(panel: Panel, table: pd.DataFrame) -> None:
    sizes = [rows for _, rows in table.groupby(SIZE[:2])]
    for place, (mark, rows) in enumerate(zip(cycle(MARKS), sizes, strict=False)):
        shift = 0.25 * ((len(sizes) - 1) / 2 - place)  # one below the other
        for _, row in rows.iterrows():
            y, colour = row["y"] + shift, LOOKS[row["arm"]]
            ends = {"low": [row["low"]], "high": [row["high"]]}
            series = f"{row['name']}, {size_name(rows)}"
            panel.sheet.record(panel.name, series, x=[y], y=[row["ratio"]], **ends)
            panel.ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.0)
            panel.ax.plot(row["ratio"], y, mark, color=colour, markersize=3.5)
        panel.ax.plot([], [], mark, color=style.GREY, markersize=3.5, label=size_name(rows))
    panel.ax.axvline(1, color=style.INK, linewidth=0.8)
    panel.ax.set_xlabel("time a token over the dense model's")
    if len(sizes) > 1:
        panel.ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), fontsize=6)


def _memory(panel: Panel, table: pd.DataFrame) -> None:
    y, left = table["y"].to_numpy(float), np.zeros(len(table))
    for column, (label, colour) in PARTS.items():
        megabytes = table[column].to_numpy(float) / 1e6
        panel.sheet.record(panel.name, label, x=y, y=megabytes)
        panel.ax.barh(y, megabytes, left=left, color=colour, label=label, height=0.7)
        left = left + megabytes
    panel.ax.set_xlabel("memory of a step (MB)")
    panel.ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), fontsize=6)
