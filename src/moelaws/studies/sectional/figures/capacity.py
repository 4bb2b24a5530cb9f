"""How even the experts' load is in each layer, and what a fixed capacity would make of it."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, middle, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_title

# Column -> its axis, for each panel of a row.
BY_LAYER = {
    "cv": "variation of tokens per expert",
    "kl": "KL from equal use (nats)",
}
OVER_TRAINING = {
    "overflow": "assignments beyond capacity",
    "unused": "capacity left empty",
}
FACTORS = {"1": "-", "1.25": style.DASHES}  # capacity factor -> line


def draw(inputs: Inputs) -> Sheet:
    """Draws evenness by layer on held-out text (a, b), overflow and unused over training (c, d)."""
    sheet = Sheet(style.DOUBLE, 4.6, ["rectilinear"] * 4, columns=2)
    table = middle(widest(inputs.derived("load")))
    if not len(table):
        for panel in sheet.panels:
            panel.message("no run with\nrouted experts completed")
        return sheet
    above, below = sheet.panels[:2], sheet.panels[2:]
    for panel, (column, label) in zip(above, BY_LAYER.items(), strict=True):
        _by_layer(panel, table[table["held_out"]], column)
        panel.ax.set_ylabel(label)
    for panel, (column, label) in zip(below, OVER_TRAINING.items(), strict=True):
        _over_training(panel, table[~table["held_out"]], column)
        panel.ax.set_ylabel(label)
    for panel in sheet.panels:
        panel.ax.set_ylim(bottom=0)
    above[0].ax.set_title(size_title(above[0], table), loc="left")
    handles, labels = above[0].ax.get_legend_handles_labels()
    sheet.figure.legend(handles, labels, loc="outside lower center", ncols=3)
    for factor, dashes in FACTORS.items():
        label = f"capacity factor {factor}"
        below[1].ax.plot([], [], color=style.GREY, linestyle=dashes, label=label)
    below[1].ax.legend()
    return sheet


def _by_layer(panel: Panel, table: pd.DataFrame, column: str) -> None:
    for arm, own in _arms(table):
        means = own.groupby("layer")[column].mean()
        label = name_of(own.iloc[0])
        panel.line(arm, means.index, means, color=LOOKS[arm], label=label, marker="o", markersize=3)
    panel.ax.set_xticks(sorted(set(table["layer"])))
    panel.ax.set_xlabel("layer")


def _over_training(panel: Panel, table: pd.DataFrame, column: str) -> None:
    for arm, own in _arms(table):
        for factor, dashes in FACTORS.items():
            means = own.groupby("step")[f"{column}_{factor}"].mean()
            series = f"{arm}, capacity factor {factor}"
            panel.line(
                series, means.index, means, color=LOOKS[arm], linestyle=dashes, linewidth=0.9
            )
    panel.ax.set_xlabel("training steps")


def _arms(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    groups = dict(list(table.groupby("arm")))
    return [(arm, groups[arm]) for arm in ARMS if arm in groups]
