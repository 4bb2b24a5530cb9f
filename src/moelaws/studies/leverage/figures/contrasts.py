"""The logarithm of F4a's leverage, with its errors by documents and by seeds."""

from __future__ import annotations

import numpy as np
from matplotlib.transforms import offset_copy

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.losses import contrast_points
from moelaws.figures.sheet import Sheet
from moelaws.studies.leverage.figures.common import BUDGET, RATIO, log_axis, percent, points_of

SPREAD = 3.6  # points between the bars of two budgets


def draw(inputs: Inputs) -> Sheet:
    """Draws ln EL over A at the trained budgets, a colour a budget."""
    sheet, panel, points = points_of(inputs, "activation")
    points = points[points["A_routed"] < 1]
    if not len(points):
        return sheet
    points = points.assign(ln_EL=np.log(points["EL"].to_numpy(float)))
    palette = style.palette(points["C"])
    for i, (C, colour) in enumerate(palette.items()):
        shift = offset_copy(
            panel.ax.transData, sheet.figure, SPREAD * (i - (len(palette) - 1) / 2), units="points"
        )
        options = {"color": colour, "label": style.power(C), "transform": shift}
        rows = at(points, "C", C)
        contrast_points(panel, style.power(C), "A_routed", rows, "ln_EL", **options)
    panel.ax.axhline(0, color=style.GREY, linewidth=0.8, zorder=0.5)
    panel.ax.margins(x=0.12)  # room for the marks beside the ends
    panel.ax.set_ylabel("ln EL")
    ratios = sorted(points["A_routed"].unique())
    log_axis(panel.ax.xaxis, RATIO, ratios if len(ratios) < 6 else ratios[::2], percent)
    panel.legend(BUDGET)
    return sheet
