"""F1a, F10b, F11b: loss curves over compute, and the leverage that Algorithm 1 reads from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.leverage.derived.curves import DENSE, Curve, curve, curves
from moelaws.studies.leverage.figures.common import (
    compute_axis,
    leverage_axis,
    leverage_points,
    percent,
)
from moelaws.tables.sweeps import in_sweep

POINTS = 81


def leverage_arrow(inputs: FittedInputs) -> Sheet:
    """Draws F1a: what leverage is, on the curves of the dense and the sparsest architecture."""
    sheet, panel = one_panel()
    dense = curve(inputs, DENSE)
    mixtures = list(curves(inputs, "curve_activation"))
    if not mixtures:
        return panel.message("no mixture of experts has\nruns enough for a curve")
    moe = max(mixtures, key=lambda moe: float(moe.rows["E"].iloc[0]))
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


def curves_and_leverage(inputs: FittedInputs, fit: str, sweep: str) -> Sheet:
    """Draws the loss curves of a sweep's architectures, and their leverage over compute."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, 2)
    losses, leverage = sheet.panels
    mixtures = list(curves(inputs, fit))
    if not mixtures:
        losses.message("no architecture has runs\nenough for a curve")
        leverage.ax.set_axis_off()
        return sheet
    names = [_name(moe, sweep) for moe in mixtures]
    colours = style.palette(value for value, _ in names)
    points = inputs.derived("points")
    points = points[(points["measured"] == 1) & in_sweep(points, sweep)]
    dense = curve(inputs, DENSE)
    _curve(losses, "dense", dense, style.INK)
    leverage.ax.plot([], [], color=style.INK, marker="o", linewidth=0.9, label="dense")
    for (value, label), moe in zip(names, mixtures, strict=True):
        colour = colours[value]
        _curve(losses, label, moe, colour)
        rows = points[points["E"] == int(moe.rows["E"].iloc[0])].sort_values("C")
        leverage.ax.plot(rows["C"], rows["EL"], color=colour, linewidth=0.9)
        leverage_points(leverage, label, rows["C"], rows, color=colour, label=label)
    losses.ax.set_ylabel("validation loss (nats/token)")
    _limits(losses, [dense, *mixtures])
    compute_axis(losses)
    leverage_axis(leverage, points["EL"])
    compute_axis(leverage)
    leverage.legend("$A = E_a/E$" if sweep == "activation" else "granularity")
    return sheet


def _name(moe: Curve, sweep: str) -> tuple[float, str]:
    """Returns what the sweep varies, of one architecture: the number and its text."""
    if sweep == "activation":
        A = 1 - float(moe.rows["S"].iloc[0])
        return A, percent(A)
    G = float(moe.rows["G"].median())
    return G, f"{round(G, 1):g}"


def _curve(
    panel: Panel, series: str, curve: Curve, colour: Any, to: float = 0.0, **options: Any
) -> None:
    """Draws the fitted curve with its interval and its runs, as far as ``to`` (FLOP) if beyond."""
    C = curve.rows["C_leverage"].to_numpy(float)
    end = max(C.max(), to if np.isfinite(to) else 0.0)
    grid = np.geomspace(C.min(), min(end, 30 * C.max()), POINTS)
    panel.line(series, grid, curve.loss(grid), **curve.loss_band(grid), color=colour, **options)
    panel.points(f"{series}, runs", C, curve.rows["L"], color=colour, markersize=3)


def _limits(panel: Panel, shown: list[Curve]) -> None:
    """Limits the y axis to the runs; intervals may run off it."""
    L = np.concatenate([curve.rows["L"].to_numpy(float) for curve in shown])
    pad = 0.07 * (float(np.ptp(L)) or 1.0)
    low, high = panel.ax.get_ylim()
    panel.ax.set_ylim(max(low, L.min() - 2 * pad), min(high, L.max() + pad))
