"""The optima of Eq 6 with the paper's coefficients, as reference lines at the paper's budgets.

Eq 6 knows compute as C = 6 N_a D with N_a = (1 - S) N. It was fitted between 3e19 and 1e21 FLOPs
on another corpus and tokenizer: beside runs of other budgets its curves say nothing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel
from moelaws.studies.sparsity.laws import loss

BUDGETS = (3e19, 1e21)  # FLOPs, the paper's least and largest
COEFFICIENTS = dict(loss.LAW.published or {})
LABEL = "published (Eq 6)"
POINTS = 61


def over_sparsity(panel: Panel, rows: pd.DataFrame, size: str, y: str) -> None:
    """Draws N*, N_a* (``size`` total or active) or L* over S, a line for each budget."""
    for C in _budgets(rows):
        densest, sparsest = -np.log1p(-rows["S"].min()), -np.log1p(-rows["S"].max())
        S = -np.expm1(-np.linspace(densest, sparsest, POINTS))
        best = loss.optimal_size(COEFFICIENTS, S, C)
        sizes = best.N if size == "total" else best.N_active
        _line(panel, C, S, best.L if y == "L_star" else sizes)
    _explain(panel, rows)


def sparsity_over_size(panel: Panel, table: pd.DataFrame) -> None:
    """Draws S* over N within the table's sparsities, a line for each budget."""
    for C in _budgets(table):
        N = np.geomspace(table["N"].min(), table["N"].max(), POINTS)
        S = loss.optimal_sparsity(COEFFICIENTS, N, C)
        _line(panel, C, N, np.minimum(S, table["S_star"].max()))
    _explain(panel, table)


def _budgets(rows: pd.DataFrame) -> list[float]:
    within = rows["C"].between(BUDGETS[0] * 0.99, BUDGETS[1] * 1.01)
    return sorted({float(C) for C in rows.loc[within, "C"]})


def _line(panel: Panel, C: float, x: Array, y: Array) -> None:
    panel.line(
        f"{LABEL}, C={C:g}", x, y, color=style.GREY, linestyle=style.DASHES, linewidth=0.8, zorder=1
    )


def _explain(panel: Panel, rows: pd.DataFrame) -> None:
    if _budgets(rows):
        panel.ax.plot([], [], color=style.GREY, ls=style.DASHES, lw=0.8, label=LABEL)
