"""How alike the experts of a layer are in their weights, by arm and layer."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.sectional.arms import ARMS, middle, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_title

PALE = 0.35


def draw(inputs: Inputs) -> Sheet:
    """Draws the cosine (a) and that of matched units beside random ones (b), means over seeds."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    plain, units = sheet.panels
    table = inputs.derived("similarity")
    if not len(table):
        for panel in sheet.panels:
            panel.message("no run with\nrouted experts completed")
        return sheet
    table = middle(widest(table))
    for arm in [arm for arm in ARMS if arm in set(table["arm"])]:
        means: pd.DataFrame = table[table["arm"] == arm].groupby("layer").mean(numeric_only=True)
        layers, colour = means.index.to_numpy(float), LOOKS[arm]
        name = name_of(table[table["arm"] == arm].iloc[0])
        plain.line(arm, layers, means["cosine"], color=colour, marker="o", label=name)
        units.line(arm, layers, means["matched"], color=colour, marker="o", label=name)
        units.line(
            f"{arm}, random", layers, means["random"], color=colour, alpha=PALE, linestyle="--",
            linewidth=0.8,
        )  # fmt: skip
    plain.ax.set_ylabel("cosine of two experts' weights")
    units.ax.set_ylabel("cosine of matched hidden units")
    for panel in sheet.panels:
        panel.ax.set_xlabel("block, from 0")
        panel.ax.set_title(size_title(panel, table), loc="left")
        style.fixed_ticks(panel.ax.xaxis, sorted(set(table["layer"])))
    units.legend()
    return sheet
