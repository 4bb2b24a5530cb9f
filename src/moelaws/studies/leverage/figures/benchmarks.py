"""F6b and F15: scores of the dense model and of the mixture beside it, over training."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import ALL, GROUP, MEASURES
from moelaws.figures import style
from moelaws.figures.losses import bars
from moelaws.figures.sheet import Sheet
from moelaws.studies.leverage.figures.common import log_axis, percent


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
    sheet = Sheet(style.DOUBLE, style.HEIGHT * len(skills), ["rectilinear"] * 2 * len(skills), 2)
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
            panel.ax.set_title(f"({panel.name}) {skill}", loc="left")
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
