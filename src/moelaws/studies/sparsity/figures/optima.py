"""F3a-c, F11, F12, drops: optima over sparsity; F4: optimal sparsities over size.

F3 and F4 show optima of the isoFLOP surfaces, F11 and F12 those of a parabola in ln N for each
budget and sparsity alone (D.4). Beside them stand the optima of Eq 6 with the paper's coefficients,
where C = 6 N_a D with N_a = (1 - S) N. Eq 6 was fitted between 3e19 and 1e21 FLOPs on another
corpus and tokenizer, so its curves are not drawn beside runs of other budgets.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.transforms import Transform

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
from moelaws.figures.axes import BUDGET
from moelaws.figures.losses import contrasts
from moelaws.figures.sheet import Panel, Sheet, one_panel, two_panels
from moelaws.studies.sparsity.figures.common import BOUNDS, colours, explain_bounds
from moelaws.studies.sparsity.laws import loss

PUBLISHED_BUDGETS = (3e19, 1e21)  # FLOPs, the paper's least and largest
COEFFICIENTS = dict(loss.LAW.published or {})
PUBLISHED = "published (Eq 6)"
PUBLISHED_POINTS = 61


def _published(panel: Panel, rows: pd.DataFrame, curve: Callable[[float], Sequence[Array]]) -> None:
    """Draws ``curve``, its x and y at a budget, for each of the paper's budgets among ``rows``."""
    within = rows["C"].between(PUBLISHED_BUDGETS[0] * 0.99, PUBLISHED_BUDGETS[1] * 1.01)
    budgets = sorted({float(C) for C in rows.loc[within, "C"]})
    for C in budgets:
        series = f"{PUBLISHED}, C={C:g}"
        panel.line(series, *curve(C), **style.PUBLISHED, linewidth=0.8, zorder=1)
    if budgets:
        panel.key(PUBLISHED, **style.PUBLISHED, linewidth=0.8)


def over_sparsity(inputs: Inputs, size: str, y: str, method: str) -> Sheet:
    """Draws the optima ``y`` (N_star or L_star) over S, a line for each budget."""
    sheet, panel = one_panel()
    rows = inputs.derived("optima", size=size, method=method)
    _draw_optima(panel, inputs, rows, size, y)
    explain_bounds(panel, rows)
    panel.legend(BUDGET)
    return sheet


def drops(inputs: Inputs, size: str, method: str) -> Sheet:
    """Draws how far L* falls from the densest models to those of S, a line for each budget."""
    sheet, panel = one_panel()
    rows = inputs.derived("optima", size=size, method=method)
    for C in sorted(set(rows["C"]) - set(rows["C"][rows["drop"].notna()])):
        sheet.warn(f"C={C:.3g} is left out: its densest runs have no optimum")
    rows = rows[rows["drop"].notna()]
    if not len(rows):
        return panel.message("no budget has optima of the\ndensest and of sparser models")
    axes.sparsity(panel.ax, rows["S"])
    contrasts(panel, rows, "S", "drop", colours(inputs, "C"))
    panel.ax.set_ylabel("$L^*$ of the densest models\nless $L^*$ (nats/token)")
    return sheet


def both_sizes_over_sparsity(inputs: Inputs, method: str) -> Sheet:
    """Draws the optimal total (a) and active (b) sizes over S, a line for each budget."""
    sheet = two_panels()
    both = {x: inputs.derived("optima", size=x, method=method) for x in ("total", "active")}
    for panel, (size, rows) in zip(sheet.panels, both.items(), strict=True):
        _draw_optima(panel, inputs, rows, size, "N_star")
    explain_bounds(sheet.panels[-1], pd.concat(both.values()))
    sheet.panels[-1].legend(BUDGET)
    return sheet


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

    def best(C: float) -> tuple[Array, Array]:
        return N, np.minimum(loss.optimal_sparsity(COEFFICIENTS, N, C), table["S_star"].max())

    _published(panel, table, best)
    axes.size(panel.ax.xaxis, style.size_label(size))
    panel.ax.set_ylabel("optimal sparsity $S^*$")
    panel.legend(BUDGET)
    return sheet


def _draw_optima(panel: Panel, inputs: Inputs, rows: pd.DataFrame, size: str, y: str) -> None:
    """Draws the optima ``y`` over S with the published ones; marks of bounds are hollow.

    Bars that would cover each other are drawn side by side; the recorded S is the true one.
    """
    if rows[y].notna().any():
        axes.sparsity(panel.ax, rows["S"])
        budgets = list(style.groups(rows, "C", colours(inputs, "C")))
        for i, (C, colour, budget) in enumerate(budgets):
            _optima_line(panel, axes.power(C), budget, y, colour, panel.beside(i, len(budgets)))
    else:
        panel.message("no optimum: each curve has\nfewer than three sizes")
    densest, sparsest = -np.log1p(-rows["S"].min()), -np.log1p(-rows["S"].max())
    S = -np.expm1(-np.linspace(densest, sparsest, PUBLISHED_POINTS))

    def best(C: float) -> tuple[Array, Array]:
        optimum = loss.optimal_size(COEFFICIENTS, S, C)
        sizes = optimum.N if size == "total" else optimum.N_active
        return S, optimum.L if y == "L_star" else sizes

    _published(panel, rows, best)
    if y == "N_star":
        axes.size(panel.ax.yaxis, "optimal " + style.size_label(size, "^*"))
    else:
        panel.ax.set_ylabel("loss at the optimum $L^*$ (nats/token)")


def _optima_line(
    panel: Panel, label: str, rows: pd.DataFrame, y: str, colour: style.Colour, place: Transform
) -> None:
    low, high = y.replace("_star", "_low"), y.replace("_star", "_high")
    optima = rows[rows[y].notna()].sort_values("S")
    panel.ax.plot(optima["S"], optima[y], color=colour, linewidth=0.9, zorder=2, transform=place)
    for note in sorted(set(optima["note"].astype(str))):
        group = optima[optima["note"] == note]
        panel.points(
            f"{label} ({note})" if note else label,
            *(group[name] for name in ("S", y, low, high)),
            color=colour,
            marker=BOUNDS[note][0] if note else "o",
            markerfacecolor="white" if note else colour,
            zorder=3,
            transform=place,
        )
    panel.key(label, color=colour, marker="o", linewidth=0.9)
    for row in rows[rows[y].isna()].itertuples():
        panel.sheet.warn(f"C={row.C:.3g}, S={row.S:g}: no optimum: {row.note}")
