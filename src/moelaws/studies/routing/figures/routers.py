"""The three routers side by side: losses over experts, a panel a base size."""

from __future__ import annotations

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.common import line, of_router
from moelaws.studies.routing.figures.looks import COLOURS, LOSS, MARKS, POINT, expert_axis
from moelaws.studies.routing.routers import ROUTERS


def draw(inputs: FittedInputs) -> Sheet:
    """Draws the losses of the routers over experts with Eq 1, a panel a size."""
    runs = {router: of_router(inputs, router.fit) for router in ROUTERS}
    dense = next(iter(runs.values())).query("E == 1")
    sizes = dense.groupby("size")["N_dense"].first().sort_values()
    sheet = Sheet(style.DOUBLE, 4.2, ["rectilinear"] * len(sizes), columns=3)
    E = np.geomspace(1, 512, 80)
    for panel, (size, N) in zip(sheet.panels, sizes.items(), strict=True):
        for router, rows in runs.items():
            own = rows[(rows["size"] == size) & (rows["E"] > 1)]
            colour, mark = COLOURS[router.name], MARKS[router.name]
            losses = line(inputs, router.fit, N_active=N, E=E)
            panel.line(f"Eq 1, {router.name}", E, losses, color=colour, lw=0.9)
            panel.points(
                router.name,
                own["E"],
                own["L"],
                color=colour,
                marker=mark,
                label=router.name,
                **POINT,
            )
        level = float(dense[dense["size"] == size]["L"].mean())
        panel.line("dense", [1, 512], [level] * 2, color=style.INK, lw=0.8, ls=style.DASHES)
        panel.ax.set_title(f"({panel.name}) {size} base parameters", loc="left")
        expert_axis(panel.ax)
    for panel in sheet.panels[::3]:
        panel.ax.set_ylabel(LOSS)
    for panel in sheet.panels[3:]:
        panel.ax.set_xlabel("experts $E$")
    sheet.panels[2].legend("router")
    return sheet
