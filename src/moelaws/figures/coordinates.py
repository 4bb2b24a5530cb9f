"""The figure of the coordinate check: how what first steps change depends on the size."""

import matplotlib as mpl
import numpy as np
import pandas as pd

from moelaws.analysis.coordinates import CHECKED
from moelaws.figures import axes, style
from moelaws.figures.sheet import Sheet

WIDTH, HEIGHT = 11.0, 2.1  # inches, of the page and of a row of panels


@mpl.rc_context(style.RC)
def draw(runs: pd.DataFrame) -> Sheet:
    """Draws the RMS of each quantity over the size, means over seeds: a row of panels a ladder.

    Colours are steps. Dashed lines are those of the control.
    """
    ladders = [*runs.groupby("ladder", sort=False)]
    quantities = [*runs["quantity"].unique()]
    across = len(quantities)
    sheet = Sheet(WIDTH, HEIGHT * len(ladders) + 0.3, across * len(ladders), across)
    colours = style.palette(runs["step"])
    panels = iter(sheet.panels)
    for ladder, rows in ladders:
        for name, panel in zip(quantities, panels, strict=False):
            panel.title(name)
            shown = rows[rows["quantity"] == name]
            for (of, step), own in shown.groupby(["parameterization", "step"], sort=False):
                mean = np.exp(np.log(own["rms"]).groupby(own["size"]).mean())
                label = f"change by step {step}" if step else "at the start"
                checked = of == CHECKED
                panel.line(
                    f"{of}, {label}",
                    mean.index,
                    mean,
                    color=colours[step],
                    marker="o",
                    markersize=2.5,
                    linestyle="-" if checked else "--",
                    label=label if checked else None,
                )
            axes.log(panel.ax.xaxis, str(ladder), sorted({*rows["size"]}), "{:g}".format)
            axes.log(panel.ax.yaxis, "RMS", text="{:g}".format)
    sheet.panels[0].key("control", color=style.GREY, linestyle="--")
    sheet.align()
    sheet.legend()
    return sheet
