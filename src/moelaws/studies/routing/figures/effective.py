"""Routed and dense models on one line: losses over the effective parameter count."""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.common import curve
from moelaws.studies.routing.figures.looks import (
    COLOURS,
    EFFECTIVE,
    LOSS,
    MARKS,
    POINT,
    SIZE,
    loss_axis,
)
from moelaws.studies.routing.figures.losses import TICKS


def draw(inputs: FittedInputs) -> Sheet:
    """Draws the losses over base size and over effective size, with the dense power law."""
    sheet = Sheet(style.DOUBLE, 2.8, ["rectilinear"] * 2)
    gains, dense = inputs.derived("gains"), inputs.rows("dense")
    ends = dense["N_dense"].min(), gains["N_effective"].max()
    N = np.geomspace(ends[0] / 1.3, ends[1] * 1.3, 80)
    law = curve(inputs, "dense", N=N)
    looks: dict[str, Any]
    axes = {"N_dense": ("base size", SIZE), "N_effective": ("effective size", EFFECTIVE)}
    for panel, (column, (title, label)) in zip(sheet.panels, axes.items(), strict=True):
        panel.line("dense law", N, law.value, law.low, law.high, color=style.INK, lw=0.9, zorder=1)
        for router, colour in COLOURS.items():
            rows = gains[gains["router"] == router]
            # Hollow, for they lie on each other.
            looks = {
                "color": colour,
                "marker": MARKS[router],
                "label": router,
                "mfc": "none",
                "mew": 0.8,
            }
            panel.points(router, rows[column], rows["L"], **looks)
        panel.points(
            "dense",
            dense["N_dense"],
            dense["L"],
            color=style.INK,
            marker="D",
            label="dense",
            **POINT,
        )
        panel.ax.set_title(f"({panel.name}) over the {title}", loc="left")
        panel.ax.set_xlim(N[0], N[-1])
        style.size_axis(panel.ax.xaxis, label)
        loss_axis(panel.ax.yaxis, 1.94, 3.3, TICKS)
    sheet.panels[0].ax.set_ylabel(LOSS)
    sheet.panels[-1].legend("router")
    return sheet
