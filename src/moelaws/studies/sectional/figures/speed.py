"""What a training step of each arm takes beside the dense model's: time and memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_title

PARTS = {
    "state_bytes": ("model, optimizer", style.INK),
    "activation_bytes": ("activations", style.GREY),
}


def draw(inputs: Inputs) -> Sheet:
    """Draws the time (a) and the memory (b) of each arm, of the widest model."""
    table = inputs.derived("speeds").rename(columns={"sweep": "arm"})
    table = widest(table[table["arm"].isin(ARMS)])
    order = [list(ARMS).index(arm) for arm in table["arm"]]
    table = table.assign(order=order)
    table = table.sort_values(["order", "E", "n_dense_layers"]).reset_index(drop=True)
    sheet = Sheet(style.DOUBLE, 3.6, ["rectilinear"] * 2)
    times, memory = sheet.panels
    _times(times, table)
    _memory(memory, table)
    memory.ax.set_ylim(times.ax.get_ylim())
    times.ax.set_title(size_title(times, table), loc="left")
    return sheet


def _times(panel: Panel, table: pd.DataFrame) -> None:
    for place, row in table.iterrows():
        y, colour = -int(str(place)), LOOKS[row["arm"]]
        ends = {"low": [row["low"]], "high": [row["high"]]}
        panel.sheet.record(panel.name, name_of(row), x=[y], y=[row["ratio"]], **ends)
        panel.ax.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.2)
        panel.ax.plot(row["ratio"], y, "o", color=colour)
    names = [name_of(row) for _, row in table.iterrows()]
    panel.ax.set_yticks(-np.arange(len(table)), names)
    panel.ax.axvline(1, color=style.INK, linewidth=0.8)
    panel.ax.set_xlabel("time a token over the dense model's")


def _memory(panel: Panel, table: pd.DataFrame) -> None:
    y, left = -np.arange(len(table)), np.zeros(len(table))
    for column, (label, colour) in PARTS.items():
        megabytes = table[column].to_numpy(float) / 1e6
        panel.sheet.record(panel.name, label, x=y, y=megabytes)
        panel.ax.barh(y, megabytes, left=left, color=colour, label=label, height=0.7)
        left = left + megabytes
    panel.ax.set_yticks(y, [""] * len(table))
    panel.ax.set_xlabel("memory of a step (MB)")
    panel.ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), ncols=2, columnspacing=1.0)
