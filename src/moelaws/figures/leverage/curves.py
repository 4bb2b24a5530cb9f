"""F1a, F10b, F11b: loss curves over compute, and the leverage that Algorithm 1 reads from them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.leverage.curves import DENSE, Curve, curve, curves
from moelaws.figures import style
from moelaws.figures.leverage.common import (
    Colour,
    compute_axis,
    leverage_axis,
    leverage_points,
    of_sweep,
    palette,
    percent,
)
from moelaws.figures.sheet import Panel, Sheet

POINTS = 81


def leverage_arrow(inputs: Inputs) -> Sheet:
    """F1a: what efficiency leverage is, on the dense and the sparsest architecture's own curves."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    dense = curve(inputs, DENSE)
    sparse = list(curves(inputs, "curve_activation"))
    if not sparse:
        panel.message("no mixture of experts has\nruns enough for a curve")
        return sheet
    moe = max(sparse, key=lambda one: float(one.rows["E"].iloc[0]))
    A = 1 - float(moe.rows["S"].iloc[0])
    budgets = np.sort(moe.rows["C_leverage"].unique())
    C = float(budgets[len(budgets) // 2])
    L = float(moe.loss(np.array([C]))[0])
    C_dense = float(dense.compute_for(np.array([L]))[0])
    _curve(panel, "dense", dense, style.INK, label="dense counterpart", to=C_dense)
    _curve(panel, f"A={A:g}", moe, style.ordered_colours(3)[1], label=f"$A$ = {percent(A)}")
    panel.ax.set_ylabel("validation loss (nats/token)")
    if np.isfinite(C_dense):
        sheet.record(panel.name, "leverage", x=[C, C_dense], y=[L, L])
        arrow = {"arrowstyle": "<->", "color": "#b02a00", "linewidth": 1.0}
        panel.ax.annotate("", (C, L), (C_dense, L), arrowprops=arrow)
        panel.ax.annotate(
            f"EL = {C_dense / C:.2g}",
            (max(C, C_dense), L),
            xytext=(5, 4),
            textcoords="offset points",
            color="#b02a00",
        )
    else:
        sheet.warn(f"the dense curve never comes down to the loss of A = {percent(A)} at C = {C:g}")
    _limits(panel, [dense, moe])
    panel.ax.set_xscale("log")
    panel.ax.set_xlim(right=2 * panel.ax.get_xlim()[1])  # room for the arrow's label
    compute_axis(panel)
    panel.ax.legend(loc="upper right")
    return sheet


def curves_and_leverage(inputs: Inputs, fit: str, sweep: str) -> Sheet:
    """Loss curves of a sweep's architectures with their runs, and their leverage over compute."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    losses, leverage = sheet.panels
    found = list(curves(inputs, fit))
    if not found:
        losses.message("no architecture has runs\nenough for a curve")
        leverage.ax.set_axis_off()
        return sheet
    names = [_name(one, sweep) for one in found]
    colours = palette(value for value, _ in names)
    points = inputs.derived("points")
    points = of_sweep(points[points["measured"] == 1], sweep)
    _curve(losses, "dense", curve(inputs, DENSE), style.INK)
    leverage.ax.plot([], [], color=style.INK, marker="o", linewidth=0.9, label="dense")
    for (value, label), one in zip(names, found, strict=True):
        colour = colours[value]
        _curve(losses, label, one, colour)
        rows = points[points["E"] == int(one.rows["E"].iloc[0])].sort_values("C")
        leverage.ax.plot(rows["C"], rows["EL"], color=colour, linewidth=0.9)
        leverage_points(leverage, label, rows["C"], rows, color=colour, label=label)
    losses.ax.set_ylabel("validation loss (nats/token)")
    _limits(losses, [curve(inputs, DENSE), *found])
    compute_axis(losses)
    leverage_axis(leverage, points["EL"])
    compute_axis(leverage)
    leverage.legend("$A = E_a/E$" if sweep == "activation" else "granularity")
    return sheet


def _name(one: Curve, sweep: str) -> tuple[float, str]:
    if sweep == "activation":
        A = 1 - float(one.rows["S"].iloc[0])
        return A, percent(A)
    G = float(one.rows["G"].median())
    return G, f"{round(G, 1):g}"


def _curve(
    panel: Panel, series: str, one: Curve, colour: Colour | str, to: float = 0.0, **options: Any
) -> None:
    """The fitted curve with its interval and its runs; drawn on to ``to`` (FLOP) where beyond."""
    C = one.rows["C_leverage"].to_numpy(float)
    end = max(C.max(), to if np.isfinite(to) else 0.0)
    grid = np.geomspace(C.min(), min(end, 30 * C.max()), POINTS)
    panel.line(series, grid, one.loss(grid), **one.loss_band(grid), color=colour, **options)
    panel.points(f"{series}, runs", C, one.rows["L"], color=colour, markersize=3)


def _limits(panel: Panel, shown: list[Curve]) -> None:
    """The y axis over the runs; intervals may run off it."""
    L = np.concatenate([one.rows["L"].to_numpy(float) for one in shown])
    pad = 0.07 * (float(np.ptp(L)) or 1.0)
    low, high = panel.ax.get_ylim()
    panel.ax.set_ylim(max(low, L.min() - 2 * pad), min(high, L.max() + pad))


FIGURES = {
    "F1a": leverage_arrow,
    "F10b": partial(curves_and_leverage, fit="curve_activation", sweep="activation"),
    "F11b": partial(curves_and_leverage, fit="curve_granularity", sweep="granularity"),
}
