"""F4: optimal sparsities over size; the published optima beside those of F3, F11 and F12.

F4 shows optima of the isoFLOP surfaces. Published are those of Eq 6 with the paper's coefficients,
where C = 6 N_a D with N_a = (1 - S) N. Eq 6 was fitted between 3e19 and 1e21 FLOPs on another
corpus and tokenizer, so its curves are not drawn beside runs of other budgets.
"""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.axes import BUDGET
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.sparsity.figures.common import colours
from moelaws.studies.sparsity.laws import loss

PUBLISHED_BUDGETS = (3e19, 1e21)  # FLOPs, the paper's least and largest
COEFFICIENTS = dict(loss.LAW.published or {})
PUBLISHED_POINTS = 61


def published(inputs: Inputs) -> pd.DataFrame:
    """Returns the sizes and losses of Eq 6's optima over S, at the paper's budgets among ours."""
    table = inputs.derived("optima")
    ends = -np.log1p(-table["S"].min()), -np.log1p(-table["S"].max())
    S = -np.expm1(-np.linspace(*ends, PUBLISHED_POINTS))
    curves = [pd.DataFrame(columns=["C", "S", "N_total", "N_active", "L_star"], dtype=float)]
    for C in _published_budgets(table):
        best = loss.optimal_size(COEFFICIENTS, S, C)
        sizes = {"N_total": best.N, "N_active": best.N_active}
        curves.append(pd.DataFrame({"C": C, "S": S, **sizes, "L_star": best.L}))
    return pd.concat(curves)


def _published_budgets(rows: pd.DataFrame) -> list[float]:
    within = rows["C"].between(PUBLISHED_BUDGETS[0] * 0.99, PUBLISHED_BUDGETS[1] * 1.01)
    return sorted({float(C) for C in rows.loc[within, "C"]})


def sparsity_over_size(inputs: Inputs, size: str) -> Sheet:
    """Draws S* over N, a line for each budget, dashed where no runs are near."""
    table = inputs.derived("sparsity_optima", size=size)
    sheet, panel = one_panel()
    if not len(table):
        return panel.message("no budget was measured\nat two or more sparsities")
    axes.sparsity(panel.ax, inputs.completed["S"], "y")
    dashed: dict[str, Any] = {"linestyle": (0, (2, 1.5)), "linewidth": 0.7}
    for C, colour, rows in style.groups(table, "C", colours(inputs, "C")):
        columns = (rows[name] for name in ("N", "S_star", "S_low", "S_high"))
        panel.line(axes.power(C), *columns, color=colour, **dashed)
        solid = rows["S_star"].where(rows["inside"])
        panel.ax.plot(rows["N"], solid, color=colour, linewidth=1.6, label=axes.power(C))
    if not table["inside"].all():
        panel.key("bound, or no\nruns nearby", color=style.GREY, **dashed)
    N = np.geomspace(table["N"].min(), table["N"].max(), PUBLISHED_POINTS)
    for C in _published_budgets(table):
        S = np.minimum(loss.optimal_sparsity(COEFFICIENTS, N, C), table["S_star"].max())
        name = "published (Eq 6)"
        panel.line(f"{name}, C={C:g}", N, S, **style.PUBLISHED, linewidth=0.8, label=name)
    axes.size(panel.ax.xaxis, style.size_label(size))
    panel.ax.set_ylabel("optimal sparsity $S^*$")
    sheet.legend(BUDGET)
    return sheet
