"""Loss curves over training, a panel a base size."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.looks import EXPERTS, LOSS, expert_colours, expert_label
from moelaws.studies.routing.routers import DENSE, main_runs

FIRST = 5e9  # tokens: before that all curves fall steeply


def draw(inputs: Inputs, router: str) -> Sheet:
    """Draws the losses of a router's runs and of the dense model over tokens."""
    curves = main_runs(inputs.derived("curves"))
    curves = curves[curves["router"].isin([router, DENSE]) & (curves["D"] >= FIRST)]
    order = inputs.completed.groupby("size")["N_dense"].first().sort_values()
    sheet = Sheet(style.DOUBLE, 4.2, ["rectilinear"] * len(order), columns=3)
    colours = expert_colours(curves)
    for panel, size in zip(sheet.panels, order.index, strict=True):
        own = curves[curves["size"] == size]
        for E, colour in colours.items():
            for i, (run, rows) in enumerate(own[own["E"] == E].groupby("run_id")):
                label = expert_label(E) if i == 0 else None
                panel.line(f"E={E:g}, run {run}", rows["D"], rows["L"], color=colour, label=label)
        panel.ax.set_title(f"({panel.name}) {size} base parameters", loc="left")
        panel.ax.set_xscale("log")
        style.fixed_ticks(panel.ax.xaxis, [5e9, 1e10, 2e10, 5e10, 1e11], style.short)
    for panel in sheet.panels[::3]:
        panel.ax.set_ylabel(LOSS)
    for panel in sheet.panels[3:]:
        panel.ax.set_xlabel("training tokens")
    sheet.panels[2].legend(EXPERTS)
    return sheet
