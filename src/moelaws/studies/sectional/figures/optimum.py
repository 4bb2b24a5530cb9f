"""E_opt over the overhead: Eq 21 as printed, the least printed cost, the least corrected cost."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FuncFormatter

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.studies.sectional.figures.common import LOOKS, shape_name
from moelaws.studies.sectional.model import CORRECTED, PRINTED, SHAPES, evaluate

BOUND = 2 ** (1 / 3)
# A panel each: the form, its result, the title.
VARIANTS = (
    (PRINTED, "E_opt_eq21", "published (Eq 21)"),
    (PRINTED, "E_opt", "published cost"),
    (CORRECTED, "E_opt", "corrected cost"),
)


def draw(inputs: Inputs) -> Sheet:
    """Draws a panel for each variant and in it a line for each shape; none reaches two experts."""
    sheet = Sheet(style.DOUBLE, 2.5, ["rectilinear"] * 3)
    alpha = np.geomspace(1e6, 1e15, 181)
    for panel, (form, result, title) in zip(sheet.panels, VARIANTS, strict=True):
        for (L, d0), colour in zip(SHAPES, style.ordered_colours(len(SHAPES)), strict=True):
            panel.line(
                f"{title}, L={L}, d0={d0}",
                alpha,
                evaluate(form, L=L, d0=d0, alpha=alpha)[result],
                color=colour,
                label=shape_name(L, d0),
                **LOOKS[form],
            )
        for height, name in ((BOUND, "$2^{1/3}$"), (1.0, "$E$ = 1")):
            panel.ax.axhline(height, color=style.WARN, linewidth=0.8, linestyle=(0, (1, 1.5)))
            panel.ax.text(
                1e15, height + 0.012, name, fontsize=6, color=style.WARN, va="bottom", ha="right"
            )
        panel.ax.set_xscale("log")
        panel.ax.xaxis.set_major_formatter(FuncFormatter(style.power))
        panel.ax.set(ylim=(0.0, 1.42), xlabel=r"overhead $\alpha$ (multiply-adds)")
        panel.ax.set_title(f"({panel.name}) {title}", loc="left")
    sheet.panels[0].ax.set_ylabel("optimal number of experts $E_{opt}$")
    sheet.panels[-1].legend()
    return sheet
