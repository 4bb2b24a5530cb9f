"""F11, F12: the optima again, from a parabola in ln N for each budget and sparsity alone (D.4)."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.figures.sparsity import published
from moelaws.figures.sparsity.common import colours, explain_bounds, optima_lines
from moelaws.figures.sparsity.optima import BUDGET


def losses(inputs: Inputs) -> Sheet:
    """F11: the loss at the optimal total size over S, a line a budget."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    rows = _parabolas(inputs, "total")
    optima_lines(panel, colours(inputs, "C"), rows, "L_star")
    published.over_sparsity(panel, rows, "total", "L_star")
    explain_bounds(panel, rows)
    panel.ax.set_ylabel("loss at the optimum $L^*$ (nats/token)")
    panel.legend(BUDGET)
    return sheet


def sizes(inputs: Inputs) -> Sheet:
    """F12: the optimal total and active sizes over S, a line a budget."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    both = {size: _parabolas(inputs, size) for size in ("total", "active")}
    for panel, (size, rows) in zip(sheet.panels, both.items(), strict=True):
        optima_lines(panel, colours(inputs, "C"), rows, "N_star")
        published.over_sparsity(panel, rows, size, "N_star")
        style.size_axis(panel.ax.yaxis, "optimal " + style.size_label(size, "^*"))
    explain_bounds(sheet.panels[-1], pd.concat(both.values()))
    sheet.panels[-1].legend(BUDGET)
    return sheet


def _parabolas(inputs: Inputs, size: str) -> pd.DataFrame:
    table = inputs.derived("optima")
    return table[(table["size"] == size) & (table["method"] == "parabola")]


FIGURES = {"F11": losses, "F12": sizes}
