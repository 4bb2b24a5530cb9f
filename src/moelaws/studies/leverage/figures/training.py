"""F6a, F6b, F15: a mixture of experts beside a dense model, by training loss and by scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import ALL, GROUP, MEASURES
from moelaws.figures import style
from moelaws.figures.losses import bars
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.leverage.figures.common import log_axis, percent

BINS = 60  # over ln(tokens): a step's loss is noisy


def losses(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the training loss over tokens, a mean a bin, and marks the final validation loss."""
    sheet, panel = one_panel()
    runs = inputs.sweep(sweep).sort_values("N_total")
    if not len(runs):
        return panel.message(f"no run of the sweep {sweep}\ncompleted")
    for (_, run), colour in zip(runs.iterrows(), style.ordered_colours(len(runs)), strict=True):
        total, active = (style.short(run[name]) for name in ("N_total", "N_active"))
        series, label = "dense", f"dense: {total}"
        if run["S"] > 0:
            A = percent(1 - run["S"])
            series, label = "mixture", f"MoE, $A$ = {A}:\n{active} of {total} active"
        history = _smooth(inputs.history(str(run["run_id"])))
        panel.line(series, history["tokens"], history["loss"], color=colour, label=label)
        panel.points(f"{series}, validation", [run["D"]], [run["L"]], color=colour, zorder=3)
    panel.ax.plot([], [], color=style.GREY, marker="o", ls="none", label="validation loss")
    panel.ax.set_ylabel("training loss (nats/token)")
    panel.ax.set_xscale("log")
    log_axis(panel.ax.xaxis, "training tokens", text=style.short)
    panel.legend()
    return sheet


def _smooth(history: pd.DataFrame) -> pd.DataFrame:
    """Returns means of the loss over equal bins of ln(tokens), without the first hundredth."""
    late = history[history["tokens"] >= history["tokens"].max() / 100]
    edges = np.geomspace(late["tokens"].min(), late["tokens"].max() * (1 + 1e-9), BINS + 1)
    bins = np.digitize(late["tokens"], edges)
    means: pd.DataFrame = late.groupby(bins)[["tokens", "loss"]].mean()
    return means


def mean(inputs: Inputs) -> Sheet:
    """Draws the mean over all tasks: wrong answers beside bits per byte."""
    return _draw(inputs, ALL)


def by_group(inputs: Inputs) -> Sheet:
    """Draws a row of the same two panels for each group of tasks."""
    return _draw(inputs, GROUP)


def _draw(inputs: Inputs, by: str) -> Sheet:
    table = inputs.derived("scores")
    table = table[table["by"] == by]
    skills = list(dict.fromkeys(table["skill"])) or [""]
    sheet = Sheet(style.DOUBLE, style.HEIGHT * len(skills), 2 * len(skills), 2)
    if not len(table):
        for panel in sheet.panels:
            panel.message("no completed run of the pair\nwas scored")
        return sheet
    runs = list(dict.fromkeys(table["run_id"]))
    colours = dict(zip(runs, style.ordered_colours(len(runs)), strict=True))
    for place, panel in enumerate(sheet.panels):
        skill, measure = skills[place // 2], list(MEASURES)[place % 2]
        rows = table[table["skill"] == skill]
        for run, colour in colours.items():
            own = rows[rows["run_id"] == run].sort_values("step")
            series, label = _names(own)
            panel.line(series, own["D"], own[measure], color=colour, linewidth=0.8)
            ends = bars(own, f"{measure}_se", measure)
            panel.points(
                series, own["D"], own[measure], **ends, color=colour, markersize=3, label=label
            )
        if measure == "error":
            guessing = rows["chance"].iloc[0]
            D = [rows["D"].min(), rows["D"].max()]
            panel.line(
                "guessing", D, [guessing] * 2, color=style.GREY, linestyle="--", linewidth=0.8
            )
        panel.ax.set_xscale("log")
        panel.ax.set_ylabel(MEASURES[measure])
        if by == GROUP:
            panel.title(f"{skill}")
        log_axis(panel.ax.xaxis, "training tokens", text=style.short)
    guess = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8, "label": "guessing (left)"}
    sheet.panels[1].ax.plot([], [], **guess)
    sheet.panels[1].legend()
    return sheet


def _names(rows: pd.DataFrame) -> tuple[str, str]:
    """Returns what a run is called in the data and in the legend."""
    run = rows.iloc[0]
    total, active = (style.short(run[name]) for name in ("N_total", "N_active"))
    if run["S"] > 0:
        return "mixture", f"MoE, $A$ = {percent(1 - run['S'])}:\n{active} of {total} active"
    return "dense", f"dense: {total}"
