"""F8, F9: isoFLOP surfaces, how well they predict unseen runs, and their slices at every budget."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.figures import style
from moelaws.figures.losses import write_statistics
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.derived.surface import surfaces
from moelaws.studies.sparsity.figures.common import colours
from moelaws.studies.sparsity.figures.goodness import observed_over_predicted
from moelaws.studies.sparsity.figures.slices import (
    draw_along_size,
    draw_along_sparsity,
    explain_optima,
)
from moelaws.studies.sparsity.figures.surface import contours, filled_mesh, loss_colours

ROW = 2.15  # inches a budget


def fitted_surfaces(inputs: FittedInputs) -> Sheet:
    """Draws F8: a row for each budget with contours of the surface, and predicted losses."""
    of_budgets = list(surfaces(inputs, "isoflop_total"))
    if not of_budgets:
        return _without_surface()
    sheet = Sheet(style.DOUBLE, ROW * len(of_budgets), ["rectilinear"] * 2 * len(of_budgets), 2)
    table = inputs.derived("subsamples")
    table = table[table["size"] == "total"]
    palette = colours(inputs, "S")
    for i, surface in enumerate(of_budgets):
        left, right = sheet.panels[2 * i : 2 * i + 2]
        mesh = filled_mesh(surface)
        contours(left, surface, mesh, loss_colours(surface, mesh))
        left.ax.set_title(f"({left.name}) $C$ = {style.power(surface.C)} FLOPs", loc="left")
        _unseen(right, at(table, "C", surface.C), palette)
    sheet.panels[1].legend("sparsity $S$")
    return sheet


def slices(inputs: FittedInputs) -> Sheet:
    """Draws F9: a row for each budget with its F2a, F2b and F2c."""
    total, active = (
        {s.C: s for s in surfaces(inputs, f"isoflop_{size}")} for size in ("total", "active")
    )
    shared = sorted(set(total) & set(active))
    if not shared:
        return _without_surface()
    sheet = Sheet(style.DOUBLE, ROW * len(shared), ["rectilinear"] * 3 * len(shared), 3)
    palette = colours(inputs, "S")
    marked = []
    for i, C in enumerate(shared):
        panels = sheet.panels[3 * i : 3 * i + 3]
        sizes = draw_along_sparsity(panels[0], total[C])
        sizes.ax.set_ylabel("")  # beside the next panel it would read as that one's
        sizes.ax.set_title(style.size_symbol(total[C].size), loc="left", fontsize=7)
        marked += [
            draw_along_size(panel, surface, palette)
            for panel, surface in zip(panels[1:], (total[C], active[C]), strict=True)
        ]
        for panel in panels:
            panel.ax.set_title(f"({panel.name}) $C$ = {style.power(C)}", loc="left")
        for panel in panels[1:]:
            panel.ax.set_ylabel("")
            low, high = panel.ax.get_xlim()
            ticks = style.round_ticks(low, high, 3)  # a third of the page is narrow
            panel.ax.xaxis.set_major_locator(FixedLocator(ticks))
    last = sheet.panels[2]
    explain_optima(last, pd.concat(marked))
    last.legend("sparsity $S$")
    return sheet


def _unseen(panel: Panel, rows: pd.DataFrame, palette: Mapping[float, style.Colour]) -> None:
    """Draws each run's loss over its mean prediction by the refits without it."""
    rows = rows[rows["predicted"].notna()]
    if not len(rows):
        panel.message("too few runs to refit\nthe surface to 80 % of them")
        return
    observed_over_predicted(panel, rows, "S", palette, lambda S: f"{S:g}")
    mse = float(np.average(rows["mse"], weights=rows["times"]))
    lines = [f"$n$ = {len(rows)}", f"MSE = {mse:.2g} nats$^2$"]
    if len(rows) > 2:
        lines.append(f"$r$ = {rows['predicted'].corr(rows['L']):.3g}")
    write_statistics(panel, lines)
    panel.ax.set_xlabel("predicted, run held out (nats/token)")


def _without_surface() -> Sheet:
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    sheet.panels[0].message("no budget had enough\ncompleted runs for a surface")
    return sheet
