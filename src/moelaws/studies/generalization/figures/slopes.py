"""F4, F5: loss over active parameters and over tokens, with slopes without and with a floor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.losses import error_among
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.base import FittableLaw
from moelaws.studies.generalization.derived.draws import Estimates, estimates
from moelaws.studies.generalization.figures.axes import few_ticks
from moelaws.tables.sweeps import in_sweep


def draw(inputs: FittedInputs, series: str, x: str, label: str) -> Sheet:
    """Draws (a) L and (b) L - L_inf over ``x``, both axes logarithmic, with the fitted line."""
    runs = inputs.derived("runs")
    rows = runs[in_sweep(runs, series)].sort_values(x)
    grid = np.geomspace(rows[x].min(), rows[x].max(), 61)
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    line, floored = sheet.panels
    for panel, form in ((line, "line"), (floored, "floor")):
        (fit,) = estimates(inputs, f"{series}_{form}")
        law = laws.fittable(inputs.fit(f"{series}_{form}").law)
        floor = fit.params.get("L_inf", 0.0)
        _points(panel, rows, x, floor)
        panel.ax.set_title(_title(panel, fit, floor), loc="left", fontsize=7)
        # The floor's own uncertainty belongs to the points in (b); the band there is of the curve.
        middle = law.predict(fit.params, {"x": grid}) - floor
        low, high = (end - floor for end in _band(law, fit, grid))
        bounds = {"low": np.where(low > 0, low, np.nan), "high": np.where(high > 0, high, np.nan)}
        panel.line("fit", grid, middle, **bounds, color=style.INK, linewidth=1.0, zorder=1)
        style.size_axis(panel.ax.xaxis, label)
        few_ticks(panel.ax.yaxis)
    line.ax.set_ylabel("validation loss $L$ (nats/token)")
    floored.ax.set_ylabel(r"$L - L_\infty$ (nats/token)")
    return sheet


def _band(law: FittableLaw, fit: Estimates, x: Array) -> Array:
    """Returns both ends (2, n) of the fitted loss over ``x`` (n,)."""
    drawn = [(p, fit.draws[p.name]) for p in law.parameters]
    theta_BP = np.column_stack([np.log(B) if p.scale == "log" else B for p, B in drawn])
    ends = [(1 - fit.level) / 2, (1 + fit.level) / 2]
    return np.asarray(np.nanquantile(law.predict_batch(theta_BP, {"x": x}), ends, axis=0))


def _points(panel: Panel, rows: pd.DataFrame, x: str, floor: float) -> None:
    """Draws the losses above ``floor`` with their standard errors, where they lie above it.

    The study's runs name no budget, so that their paired errors are among all of them.
    """
    y = rows["L"] - floor
    shown = y > 0
    if not shown.all():
        panel.sheet.warn(f"{int((~shown).sum())} runs lie at or below the fitted floor")
    bars: dict[str, Any] = {}
    se = rows[error_among(rows)].astype(float)
    if np.isfinite(se).any():
        low = np.where(y - se > 0, y - se, np.nan)
        bars = {"low": low[shown], "high": (y + se)[shown]}
    panel.ax.set(xscale="log", yscale="log")
    colour = style.ordered_colours(3)[1]
    panel.points("runs", rows[x][shown], y[shown], **bars, color=colour, zorder=3)
    panel.ax.margins(0.05, 0.1)


def _title(panel: Panel, fit: Estimates, floor: float) -> str:
    alpha, metrics = fit.with_interval("alpha"), fit.result.metrics
    above = rf"above $L_\infty$ = {floor:.3f}" if floor else "no floor"
    return (
        rf"({panel.name}) {above}: $\alpha$ = {alpha['value']:.3f} "
        f"({alpha['value_low']:.3f} to {alpha['value_high']:.3f})"
        f"\n$n$ = {fit.result.n}, $R^2$ = {metrics['r2']:.3f}, AIC {metrics['aic']:.1f}"
    )
