"""What routing saves over the dense model of the same base size, and where it stops helping."""

from __future__ import annotations

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.figures.common import line, router_panels
from moelaws.studies.routing.figures.looks import EXPERTS, POINT, SIZE, expert_colours
from moelaws.studies.routing.routers import CUTOFF

SHOWN = (2, 8, 32, 128, 512)
LARGEST = 2e13  # of the axis
BELOW = -0.03  # the line of no gain, nats/token: where a second interval has room


def draw(inputs: FittedInputs) -> Sheet:
    """Draws the gains over base size with Eq 1, and the cut-off's intervals, a panel a router."""
    sheet = Sheet(style.DOUBLE, 2.7, ["rectilinear"] * 3)
    gains = inputs.derived("gains")
    cutoffs = inputs.derived("cutoffs").query("objective == 'squared'").set_index("router")
    sizes = inputs.derived("sizes")
    over_sizes = sizes[sizes["quantity"] == CUTOFF].set_index("router")
    gains = gains[gains["E"].isin(SHOWN)]
    colours = expert_colours(gains)
    for panel, router, fit in router_panels(sheet):
        own = gains[gains["router"] == router]
        measured = float(own["N_dense"].max())
        for low, high, dashes in (
            (float(own["N_dense"].min()), measured, "-"),
            (measured, LARGEST, style.DASHES),
        ):
            N = np.geomspace(low, high, 60)
            dense = line(inputs, fit, N_active=N, E=1)
            for E, colour in colours.items():
                gain = dense - line(inputs, fit, N_active=N, E=E)
                panel.line(f"Eq 1, E={E:g}", N, gain, color=colour, lw=0.9, ls=dashes)
        for E, colour in colours.items():
            rows = own[own["E"] == E]
            panel.points(
                f"E={E:g}", rows["N_dense"], rows["gain"], color=colour, label=f"{E:g}", **POINT
            )
        panel.ax.axhline(0, color=style.GREY, lw=0.6, zorder=0)
        cut = cutoffs.loc[router]
        for name, label, interval, y, alpha in (
            ("independent residuals", "residuals", cut, 0.0, 0.5),
            ("base sizes left out", "sizes", over_sizes.loc[router], BELOW, 0.25),
        ):
            ends = 10 ** np.clip([interval["low"], interval["high"]], 0, np.log10(LARGEST))
            panel.line(
                f"cut-off, interval by {name}", ends, [y, y], color=style.WARN, lw=3, alpha=alpha,
                label=f"cut-off by\n{label}",
            )  # fmt: skip
        panel.points("cut-off", 10 ** cut["log10_N"], 0, color=style.WARN, marker="o", **POINT)
        panel.points(
            "cut-off, stated", 10 ** cut["stated"], 0, color=style.INK, marker="D", ms=3, **POINT
        )
        panel.ax.set(xscale="log", xlim=(1e7, LARGEST), xlabel=SIZE, ylim=(-0.07, 0.62))
        style.fixed_ticks(panel.ax.xaxis, [1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13], style.short)
    sheet.panels[0].ax.set_ylabel("loss saved by routing (nats/token)")
    sheet.panels[-1].legend(EXPERTS)
    return sheet
