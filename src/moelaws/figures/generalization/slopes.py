"""F4, F5: loss over active parameters and over tokens, with slopes without and with a floor."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.generalization.draws import Estimates, estimates, with_interval
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.generalization.axes import few_ticks
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.base import FittableLaw
from moelaws.tables.sweeps import in_sweep


def draw(inputs: Inputs, series: str, x: str, label: str) -> Sheet:
    """(a) L and (b) L - L_inf over ``x``, both axes logarithmic, with the fitted line."""
    runs = inputs.derived("runs")
    rows = runs[in_sweep(runs, series)].sort_values(x)
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    line, floored = sheet.panels
    for panel, form in ((line, "line"), (floored, "floor")):
        (fit,) = estimates(inputs, f"{series}_{form}")
        law = laws.fittable(inputs.fit(f"{series}_{form}").law)
        floor = fit.params.get("L_inf", 0.0)
        _panel(panel, rows, x, floor, fit)
        grid = np.geomspace(rows[x].min(), rows[x].max(), 61)
        names = list(law.names)
        theta = np.column_stack([_working(law, fit, name) for name in names])
        drawn = law.predict_batch(theta, {"x": grid})
        low, high = np.nanquantile(drawn, [(1 - fit.level) / 2, (1 + fit.level) / 2], axis=0)
        middle = law.predict(fit.params, {"x": grid}) - floor
        # The floor's own uncertainty belongs to the points in (b); the band there is of the curve.
        bounds = {"low": low - floor, "high": high - floor}
        bounds = {name: np.where(end > 0, end, np.nan) for name, end in bounds.items()}
        panel.line("fit", grid, middle, **bounds, color=style.INK, linewidth=1.0, zorder=1)
        style.size_axis(panel.ax.xaxis, label)
        few_ticks(panel.ax.yaxis)
    line.ax.set_ylabel("validation loss $L$ (nats/token)")
    floored.ax.set_ylabel(r"$L - L_\infty$ (nats/token)")
    return sheet


def _working(law: FittableLaw, fit: Estimates, name: str) -> Array:
    """Draws (B,) of a parameter on the scale that the law is fitted on."""
    (parameter,) = (p for p in law.parameters if p.name == name)
    draws = fit.draws[name]
    return np.log(draws) if parameter.scale == "log" else draws


def _panel(panel: Panel, rows: pd.DataFrame, x: str, floor: float, fit: Estimates) -> None:
    y = rows["L"] - floor
    shown = y > 0
    if not shown.all():
        panel.sheet.warn(f"{int((~shown).sum())} runs lie at or below the fitted floor")
    bars: dict[str, Any] = {}
    if np.isfinite(rows["L_se"]).any():
        low = np.where(y - rows["L_se"] > 0, y - rows["L_se"], np.nan)
        bars = {"low": low[shown], "high": (y + rows["L_se"])[shown]}
    panel.ax.set(xscale="log", yscale="log")
    colour = style.ordered_colours(3)[1]
    panel.points("runs", rows[x][shown], y[shown], **bars, color=colour, zorder=3)
    alpha = with_interval("alpha", fit.params["alpha"], fit.draws["alpha"], fit.level)
    ends = f"{alpha['alpha_low']:.3f} to {alpha['alpha_high']:.3f}"
    above = rf"above $L_\infty$ = {floor:.3f}" if floor else "no floor"
    panel.ax.set_title(
        rf"({panel.name}) {above}: $\alpha$ = {alpha['alpha']:.3f} ({ends})"
        f"\n$n$ = {fit.part.n}, $R^2$ = {fit.part.metrics['r2']:.3f}, "
        f"AIC {fit.part.metrics['aic']:.1f}",
        loc="left",
        fontsize=7,
    )
    panel.ax.margins(0.05, 0.1)


FIGURES = {
    "F4": partial(draw, series="model", x="N_act", label="active parameters $N_{act}$"),
    "F5": partial(draw, series="data", x="D", label="training tokens $D$"),
}
