"""Efficiency leverage of architectures (F4a to c), and its errors."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, losses, style
from moelaws.figures.axes import BUDGET
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.report import FitReport
from moelaws.studies.leverage.figures.common import (
    PUBLISHED_BUDGETS,
    PUBLISHED_LINE,
    leverage_axis,
    leverage_points,
    percent,
    points_of,
    published_leverage,
    ratio_axis,
)


def over_activation(inputs: FittedInputs) -> Sheet:
    """Draws F4a: EL over A at G = 2, a colour for each budget, with Eq 1 fitted to each."""
    sheet, panel, points = points_of(inputs, sweep="activation", measured=1)
    if not len(points):
        return sheet
    A = np.geomspace(points["A_routed"].min(), 1.0, 61)
    _budgets(panel, points, "A_routed", inputs.fit("activation"), A=A, G=points["G"].median())
    ratio_axis(panel, points["A_routed"])
    return sheet


def over_granularity(inputs: FittedInputs) -> Sheet:
    """Draws F4b: EL over G at one activation ratio, a colour for each budget, with Eq 2 fitted."""
    sheet, panel, points = points_of(inputs, sweep="granularity", measured=1)
    if not len(points):
        return sheet
    G, A = np.geomspace(points["G"].min(), points["G"].max(), 61), points["A_routed"].median()
    _budgets(panel, points, "G", inputs.fit("granularity"), G=G, A=A)
    whole = sorted({round(float(value), 1) for value in points["G"]})
    axes.log(panel.ax.xaxis, "granularity $G$", whole, "{:.0f}".format)
    panel.ax.set_title(f"$A$ = {percent(A)}", loc="left")
    return sheet


def over_compute(inputs: FittedInputs) -> Sheet:
    """Draws F4c: EL over C, a colour for each A, with Eq 3; hollow where extrapolated."""
    sheet, panel, points = points_of(inputs, sweep="activation")
    if not len(points):
        return sheet
    points = points[points["A_routed"] < 1]
    report, fitted = inputs.fit("compute"), []
    for A, colour, rows in style.groups(points.sort_values("C"), "A_routed"):
        inside = rows["measured"] == 1
        label = percent(A)
        leverage_points(panel, label, rows["C"][inside], rows[inside], color=colour, label=label)
        panel.points(
            f"{label}, curves extrapolated",
            rows["C"][~inside],
            rows["EL"][~inside],
            color=colour,
            markerfacecolor="white",
            markersize=3.2,
        )
        C = np.geomspace(rows["C"].min(), rows["C"].max(), 41)
        params = _estimates(report, "E", float(rows["E"].iloc[0]))
        if params is not None:
            y = laws.fittable(report.law).predict(params, {"C": C})
            panel.line(f"{label}, Eq 3", C, y, color=colour, linewidth=0.9)
            fitted.append(y)
        if PUBLISHED_BUDGETS[0] <= rows["C"].max():
            y = published_leverage(A, rows["G"].median(), C)
            panel.line(f"{label}, published", C, y, **PUBLISHED_LINE)
    if PUBLISHED_BUDGETS[0] <= points["C"].max():
        panel.key("published", **PUBLISHED_LINE)
    panel.key("curves\nextrapolated", color=style.GREY, marker="o", mfc="white", ls="none")
    leverage_axis(panel, np.concatenate([points["EL"][points["measured"] == 1], *fitted]))
    axes.compute(panel.ax.xaxis)
    panel.legend("$A = E_a/E$")
    return sheet


def _budgets(
    panel: Panel, points: pd.DataFrame, x: str, report: FitReport, **published_at: Any
) -> None:
    """Draws the points over their column ``x``, a colour for each budget, with law and legend.

    The published leverage is drawn beside them at ``published_at``: the values of A and G, of which
    the law's variable is the grid of the lines.
    """
    law = laws.fittable(report.law)
    (variable,) = (v.name for v in law.variables)
    grid = published_at[variable]
    for C, colour, rows in style.groups(points, "C"):
        label = axes.power(C)
        leverage_points(panel, label, rows[x], rows, color=colour, label=label)
        params = _estimates(report, "C", C)
        if params is not None:
            y = law.predict(params, {variable: grid})
            panel.line(f"{label}, fit", grid, y, color=colour, linewidth=0.9)
    nearest = float(np.clip(points["C"].max(), *PUBLISHED_BUDGETS))
    y = published_leverage(C=nearest, **published_at)
    panel.line("published", grid, y, label=f"published ({axes.power(nearest)})", **PUBLISHED_LINE)
    leverage_axis(panel, np.concatenate([points["EL"], y]))
    panel.legend(BUDGET)


def _estimates(report: FitReport, column: str, value: float) -> dict[str, float] | None:
    """Returns the estimates where ``column`` is ``value``; None where the fit has none."""
    for result in report.parts:
        if np.isclose(result.where[column], value, rtol=1e-9, atol=0):
            return result.estimates()
    return None


def contrasts(inputs: Inputs) -> Sheet:
    """Draws ln EL over A with its errors, a colour for each trained budget."""
    sheet, panel, points = points_of(inputs, sweep="activation", measured=1)
    points = points[points["A_routed"] < 1]
    if not len(points):
        return sheet
    points = points.assign(ln_EL=np.log(points["EL"].to_numpy(float)))
    losses.contrasts(panel, points, "A_routed", "ln_EL")
    panel.ax.margins(x=0.12)  # room for the marks beside the ends
    panel.ax.set_ylabel("ln EL")
    ratio_axis(panel, points["A_routed"])
    return sheet
