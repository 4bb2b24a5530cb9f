"""F3a to c, F10a to F13a, F14a, F14c, F16: the loss over what a sub-experiment varies."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.leverage.derived.series import SERIES, Parabola, Series
from moelaws.studies.leverage.figures.common import BUDGET, log_axis, percent

STAR = {"marker": "*", "markersize": 8, "color": "#e07b00", "zorder": 4, "linestyle": "none"}
NO_RUNS = "no budget has two completed runs\nof this sub-experiment to compare"
NEAR = 0.005  # App M, leverage: within 0.5 % of the size's least loss


def loss(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss, a line a budget, with a star at each least."""
    sheet, panel = one_panel()
    series = SERIES[sweep]
    runs = series.compared(inputs)
    if not len(runs):
        return panel.message(NO_RUNS)
    _lines(panel, series, runs, "L")
    panel.ax.set_ylabel("validation loss (nats/token)")
    panel.legend(BUDGET)
    return sheet


def loss_and_excess(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss beside how far each run is above the least of its budget."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, 2)
    losses, excesses = sheet.panels
    series = SERIES[sweep]
    runs = series.compared(inputs)
    if not len(runs):
        losses.message(NO_RUNS)
        excesses.ax.set_axis_off()
        return sheet
    _lines(losses, series, runs, "L")
    losses.ax.set_ylabel("validation loss (nats/token)")
    means = runs.groupby(["C", "x"])["L"].mean()
    least = runs["C"].map(means.groupby("C").min())
    _lines(excesses, series, runs.assign(excess=100 * (runs["L"] / least - 1)), "excess")
    limits = excesses.ax.get_ylim()  # of the runs: the parabola's interval may run off
    _parabola(excesses, series, runs)
    excesses.ax.set_ylim(limits)
    excesses.ax.set_ylabel("loss above the budget's least (%)")
    excesses.legend(BUDGET)
    return sheet


def _lines(panel: Panel, series: Series, runs: pd.DataFrame, y: str) -> None:
    for C, colour in style.palette(runs["C"]).items():
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


def _line(panel: Panel, label: str, runs: pd.DataFrame, y: str, colour: style.Colour) -> None:
    """Draws every run and a line of the means over seeds, with a star at the least mean."""
    panel.points(label, runs["x"], runs[y], color=colour, markersize=3, label=label)
    mean = runs.groupby("x")[y].mean()
    panel.ax.plot(mean.index, mean.to_numpy(), color=colour, linewidth=0.9)
    if len(mean) > 1:
        panel.ax.plot([mean.idxmin()], [mean.min()], **STAR)


def _parabola(panel: Panel, series: Series, runs: pd.DataFrame) -> None:
    """Draws the parabola that all budgets share (ln L, a level for each) above its own least."""
    parabola = series.parabola(runs)
    if parabola is None:
        return
    grid = np.linspace(parabola.low, parabola.high, 61)
    y, low, high = (100 * column for column in np.transpose([_excess(parabola, t) for t in grid]))
    bounds = {"low": low, "high": high} if np.isfinite(low).all() else {}
    x = np.exp2(grid) if series.log2 else grid
    panel.line("all budgets", x, y, **bounds, color=style.INK, label="all budgets:\nparabola")


def _excess(parabola: Parabola, t: float) -> tuple[float, float, float]:
    value, draws = parabola.excess(t)
    low, high = np.quantile(draws, [0.05, 0.95]) if len(draws) else (np.nan, np.nan)
    return value, float(low), float(high)


def heads(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss over the number of heads; stars are near-optimal."""
    sheet, panel = one_panel()
    runs = SERIES[sweep].runs(inputs)
    if not len(runs):
        return panel.message("this tier trains no run\nof this sub-experiment")
    near = runs["L"] <= (1 + NEAR) * runs.groupby("C")["L"].transform("min")
    for C, colour in style.palette(runs["C"]).items():
        rows = at(runs, "C", C)
        width = ", ".join(f"{d}" for d in sorted(rows["d_model"].unique()))
        label = f"{width} ({style.power(C)})"
        panel.line(label, rows["x"], rows["L"], color=colour, marker="o", markersize=3, label=label)
    panel.points(
        "near-optimal", runs["x"][near], runs["L"][near], marker="*", markersize=7,
        color="#c62828", zorder=4, label="within 0.5 %\nof the least",
    )  # fmt: skip
    log_axis(panel.ax.xaxis, SERIES[sweep].label, sorted(runs["x"].unique()), lambda v: f"{v:g}")
    panel.ax.set_ylabel("validation loss (nats/token)")
    panel.legend("$d_{model}$ (FLOPs)")
    return sheet
