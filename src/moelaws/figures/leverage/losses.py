"""F3a-c, F10a-F13a, F14a, F14c: the loss over what each sub-experiment varies, a line a budget."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.leverage.pooled import Parabola, parabola
from moelaws.analysis.leverage.series import SERIES, Series
from moelaws.figures import style
from moelaws.figures.leverage.common import BUDGET, Colour, log_axis, palette, percent
from moelaws.figures.sheet import Panel, Sheet

STAR = {"marker": "*", "markersize": 8, "color": "#e07b00", "zorder": 4, "linestyle": "none"}


def loss(inputs: Inputs, sweep: str) -> Sheet:
    """The loss, a line a budget, a star at each least."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    series, runs = SERIES[sweep], _varied(inputs, sweep)
    if _nothing(panel, runs):
        return sheet
    _lines(panel, series, runs, "L")
    panel.ax.set_ylabel("validation loss (nats/token)")
    panel.legend(BUDGET)
    return sheet


def loss_and_excess(inputs: Inputs, sweep: str) -> Sheet:
    """The loss, and how far each run is above the least of its budget, where shapes show."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    series, runs = SERIES[sweep], _varied(inputs, sweep)
    if _nothing(sheet.panels[0], runs):
        sheet.panels[1].ax.set_axis_off()
        return sheet
    _lines(sheet.panels[0], series, runs, "L")
    sheet.panels[0].ax.set_ylabel("validation loss (nats/token)")
    means = runs.groupby(["C", "x"])["L"].mean()
    least = runs["C"].map(means.groupby("C").min())
    _lines(sheet.panels[1], series, runs.assign(excess=100 * (runs["L"] / least - 1)), "excess")
    limits = sheet.panels[1].ax.get_ylim()  # of the runs: the parabola's interval may run off
    _pooled(sheet.panels[1], series, runs)
    sheet.panels[1].ax.set_ylim(limits)
    sheet.panels[1].ax.set_ylabel("loss above the budget's least (%)")
    sheet.panels[1].legend(BUDGET)
    return sheet


def _varied(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """The sweep's runs at budgets with two values of x or more."""
    runs = SERIES[sweep].runs(inputs)
    return runs[runs.groupby("C")["x"].transform("nunique") > 1]


def _nothing(panel: Panel, runs: pd.DataFrame) -> bool:
    if not len(runs):
        panel.message("no budget has two completed runs\nof this sub-experiment to compare")
    return not len(runs)


def _lines(panel: Panel, series: Series, runs: pd.DataFrame, y: str) -> None:
    for C, colour in palette(runs["C"]).items():
        _line(panel, style.power(C), at(runs, "C", C), y, colour)
    panel.ax.plot([], [], label="least of a budget", **STAR)
    x = sorted(runs["x"].unique())
    if series.sweep == "activation":
        shown = x if len(x) <= 5 else x[::2]
        log_axis(panel.ax.xaxis, series.label, shown, percent)
    elif series.log2:
        whole = sorted({round(value, 1) for value in x if abs(value - round(value)) < 0.05})
        log_axis(panel.ax.xaxis, series.label, whole, lambda v: f"{v:.3g}")
    else:
        panel.ax.set_xlabel(series.label)


def _line(panel: Panel, label: str, runs: pd.DataFrame, y: str, colour: Colour) -> None:
    """Every run, joined by the means over seeds; a star at the least mean."""
    panel.points(label, runs["x"], runs[y], color=colour, markersize=3, label=label)
    mean = runs.groupby("x")[y].mean()
    panel.ax.plot(mean.index, mean.to_numpy(), color=colour, linewidth=0.9)
    if len(mean) > 1:
        panel.ax.plot([mean.idxmin()], [mean.min()], **STAR)


def _pooled(panel: Panel, series: Series, runs: pd.DataFrame) -> None:
    """The parabola common to all budgets (ln L, a level for each), drawn above its own least."""
    t, L, C = series.scale(runs["x"]), runs["L"].to_numpy(float), runs["C"].to_numpy(float)
    found = parabola(t, L, C)
    if found is None:
        return
    grid = np.linspace(found.low, found.high, 61)
    drawn = [_excess(found, value) for value in grid]
    y, low, high = (100 * np.array(column) for column in zip(*drawn, strict=True))
    bounds = {"low": low, "high": high} if np.isfinite(low).all() else {}
    x = np.exp2(grid) if series.log2 else grid
    panel.line("all budgets", x, y, **bounds, color=style.INK, label="all budgets:\nparabola")


def _excess(found: Parabola, t: float) -> tuple[float, float, float]:
    value, draws = found.excess(t)
    low, high = np.quantile(draws, [0.05, 0.95]) if len(draws) else (np.nan, np.nan)
    return value, float(low), float(high)


FIGURES = {
    "F3a": partial(loss, sweep="activation"),
    "F3b": partial(loss, sweep="granularity"),
    "F3c": partial(loss, sweep="shared"),
    "F10a": partial(loss_and_excess, sweep="activation"),
    "F11a": partial(loss_and_excess, sweep="granularity"),
    "F12a": partial(loss_and_excess, sweep="granularity_weak"),
    "F13a": partial(loss_and_excess, sweep="shared"),
    "F14a": partial(loss_and_excess, sweep="dense_layers"),
    "F14c": partial(loss_and_excess, sweep="attention"),
}
