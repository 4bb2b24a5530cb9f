"""Observed over predicted losses, a panel a router."""

from __future__ import annotations

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.losses import equal_axes, error_lines, write_statistics
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.common import line, of_router, router_panels
from moelaws.studies.routing.figures.looks import EXPERTS, POINT, expert_colours, expert_label

TICKS = (2.0, 2.4, 2.8, 3.2)  # the same for all routers
ENDS = (1.9, 3.25)


def draw(inputs: FittedInputs) -> Sheet:
    """Draws each router's runs over what Eq 1 predicts of them, coloured by experts."""
    sheet = Sheet(style.DOUBLE, 2.4, ["rectilinear"] * 3)
    for panel, _, fit in router_panels(sheet):
        runs = of_router(inputs, fit)
        predicted = line(inputs, fit, N_active=runs["N_dense"], E=runs["E"])
        for E, colour in expert_colours(runs).items():
            own = (runs["E"] == E).to_numpy()
            label = expert_label(E)
            panel.points(
                f"E={E:g}", predicted[own], runs["L"][own], color=colour, label=label, **POINT
            )
        L = runs["L"].to_numpy(float)
        equal_axes(panel, predicted, L, 0.05, 5)
        for axis in (panel.ax.xaxis, panel.ax.yaxis):
            style.fixed_ticks(axis, TICKS, "{:.1f}".format)
        panel.ax.set(xlim=ENDS, ylim=ENDS)
        write_statistics(panel, error_lines(predicted, L, ".4f"))
    for panel in sheet.panels[1:]:
        panel.ax.set_ylabel("")
    sheet.panels[-1].legend(EXPERTS)
    return sheet
