"""Losses over dense size by experts, with the fitted law: a panel a router."""

from __future__ import annotations

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.common import curve, of_router, router_panels
from moelaws.studies.routing.figures.looks import (
    EXPERTS,
    LOSS,
    POINT,
    SIZE,
    expert_colours,
    expert_label,
    loss_axis,
)

TICKS = (2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2)


def draw(inputs: FittedInputs) -> Sheet:
    """Draws the runs of each router with Eq 1, a colour a number of experts."""
    sheet = Sheet(style.DOUBLE, 2.7, ["rectilinear"] * 3)
    for panel, _, fit in router_panels(sheet):
        runs = of_router(inputs, fit)
        N = np.geomspace(runs["N_dense"].min() / 1.25, runs["N_dense"].max() * 1.25, 60)
        for E, colour in expert_colours(runs).items():
            rows = runs[runs["E"] == E]
            line = curve(inputs, fit, N_active=N, E=E)
            panel.line(f"Eq 1, E={E:g}", N, line.value, line.low, line.high, color=colour, lw=0.9)
            label = expert_label(E)
            panel.points(f"E={E:g}", rows["N_dense"], rows["L"], color=colour, label=label, **POINT)
        style.size_axis(panel.ax.xaxis, SIZE)
        loss_axis(panel.ax.yaxis, 1.94, 3.3, TICKS)
    sheet.panels[0].ax.set_ylabel(LOSS)
    sheet.panels[-1].legend(EXPERTS)
    return sheet
