"""Loss over what a sub-experiment varies (F3, F10a to F14c, F16), and over training (F6, F15)."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import GROUP, MEASURES
from moelaws.figures import axes, style
from moelaws.figures.axes import BUDGET, VALIDATION_LOSS
from moelaws.figures.losses import bars
from moelaws.figures.sheet import Panel, Sheet, one_panel, two_panels
from moelaws.studies.leverage.derived.series import SERIES, Series
from moelaws.studies.leverage.figures.common import percent, ratio_axis

STAR = {"marker": "*", "markersize": 8, "color": "#e07b00", "zorder": 4, "linestyle": "none"}
NO_RUNS = "no budget has two completed runs\nof this sub-experiment to compare"
NEAR = 0.005  # near-optimal: within 0.5 % of the least loss of the size (App M, leverage)


def loss(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss, a line for each budget with a star at its least."""
    sheet, panel = one_panel()
    series = SERIES[sweep]
    runs = series.compared(inputs)
    if not len(runs):
        return panel.message(NO_RUNS)
    _lines(panel, series, runs, "L")
    panel.ax.set_ylabel(VALIDATION_LOSS)
    panel.legend(BUDGET)
    return sheet


def loss_and_excess(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss beside how far each run is above the least of its budget."""
    sheet = two_panels()
    losses, excesses = sheet.panels
    series = SERIES[sweep]
    runs = series.compared(inputs)
    if not len(runs):
        return sheet.message(NO_RUNS)
    _lines(losses, series, runs, "L")
    losses.ax.set_ylabel(VALIDATION_LOSS)
    means = runs.groupby(["C", "x"])["L"].mean()
    least = runs["C"].map(means.groupby("C").min())
    _lines(excesses, series, runs.assign(excess=100 * (runs["L"] / least - 1)), "excess")
    limits = excesses.ax.get_ylim()  # of the runs: the parabola's interval may run off
    _parabola(excesses, series, runs)
    excesses.ax.set(ylim=limits, ylabel="loss above the budget's least (%)")
    excesses.legend(BUDGET)
    return sheet


def _lines(panel: Panel, series: Series, runs: pd.DataFrame, y: str) -> None:
    """Draws every run, and for each budget a line through its means, a star at the least mean."""
    for C, colour, own in style.groups(runs, "C"):
        label = axes.power(C)
        panel.points(label, own["x"], own[y], color=colour, markersize=3, label=label)
        mean = own.groupby("x")[y].mean()  # over seeds
        panel.ax.plot(mean.index, mean.to_numpy(), color=colour, linewidth=0.9)
        if len(mean) > 1:
            panel.ax.plot([mean.idxmin()], [mean.min()], **STAR)
    panel.key("least of a budget", **STAR)
    x = runs["x"].unique()
    if series.sweep == "activation":
        ratio_axis(panel, x)
    elif series.log2:
        whole = {round(value, 1) for value in x if abs(value - round(value)) < 0.05}
        axes.log(panel.ax.xaxis, series.label, whole)
    else:
        panel.ax.set_xlabel(series.label)


def _parabola(panel: Panel, series: Series, runs: pd.DataFrame) -> None:
    """Draws how far the parabola that all budgets share (in ln L) lies above its least."""
    parabola = series.parabola(runs)
    if parabola is None:
        return
    grid = np.linspace(parabola.low, parabola.high, 61)
    above = np.array([100 * parabola.excess(t) for t in grid])
    ends = np.quantile(above[:, 1:], [0.05, 0.95], axis=1) if above.shape[1] > 1 else ()
    bounds = dict(zip(("low", "high"), ends, strict=False))
    x, y = np.exp2(grid) if series.log2 else grid, above[:, 0]
    panel.line("all budgets", x, y, **bounds, color=style.INK, label="all budgets:\nparabola")


def heads(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss over the number of heads, with stars on the near-optimal runs."""
    sheet, panel = one_panel()
    runs = SERIES[sweep].runs(inputs)
    if not len(runs):
        return panel.message("this tier trains no run\nof this sub-experiment")
    near = runs["L"] <= (1 + NEAR) * runs.groupby("C")["L"].transform("min")
    for C, colour, rows in style.groups(runs, "C"):
        width = ", ".join(f"{d}" for d in sorted(rows["d_model"].unique()))
        label = f"{width} ({axes.power(C)})"
        panel.line(label, rows["x"], rows["L"], color=colour, marker="o", markersize=3, label=label)
    panel.points(
        "near-optimal", runs["x"][near], runs["L"][near], marker="*", markersize=7,
        color="#c62828", zorder=4, label="within 0.5 %\nof the least",
    )  # fmt: skip
    axes.log(panel.ax.xaxis, SERIES[sweep].label, runs["x"].unique())
    panel.ax.set_ylabel(VALIDATION_LOSS)
    panel.legend("$d_{model}$ (FLOPs)")
    return sheet


BINS = 60  # over ln(tokens): a step's loss is noisy


def losses(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the training loss over tokens as means over bins, and the final validation loss."""
    sheet, panel = one_panel()
    runs = inputs.sweep(sweep).sort_values("N_total")
    if not len(runs):
        return panel.message(f"no run of the sweep {sweep}\ncompleted")
    for (_, run), colour in zip(runs.iterrows(), style.ordered_colours(len(runs)), strict=True):
        series, label = _names(run)
        history = inputs.history(str(run["run_id"]))
        tokens = history["tokens"]
        late = history[tokens >= tokens.max() / 100]  # without the first hundredth of the tokens
        ends = late["tokens"].min(), late["tokens"].max() * (1 + 1e-9)
        bins = np.digitize(late["tokens"], np.geomspace(*ends, BINS + 1))
        means = late.groupby(bins)[["tokens", "loss"]].mean()
        panel.line(series, means["tokens"], means["loss"], color=colour, label=label)
        panel.points(f"{series}, validation", [run["D"]], [run["L"]], color=colour, zorder=3)
    panel.key("validation loss", color=style.GREY, marker="o", ls="none")
    panel.ax.set_ylabel("training loss (nats/token)")
    axes.log(panel.ax.xaxis, "training tokens", text=style.short)
    panel.legend()
    return sheet


def scores(inputs: Inputs, by: str) -> Sheet:
    """Draws wrong answers beside bits per byte: the mean over all tasks, or a row for a group."""
    table = inputs.derived("scores", by=by)
    skills = list(dict.fromkeys(table["skill"])) or [""]
    sheet = Sheet(style.DOUBLE, style.HEIGHT * len(skills), 2 * len(skills), 2)
    if not len(table):
        return sheet.message("no completed run of the pair\nwas scored")
    runs = list(dict.fromkeys(table["run_id"]))
    colours = dict(zip(runs, style.ordered_colours(len(runs)), strict=True))
    guess: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
    for place, panel in enumerate(sheet.panels):
        skill, measure = skills[place // 2], list(MEASURES)[place % 2]
        rows = table[table["skill"] == skill]
        for run, colour in colours.items():
            own = rows[rows["run_id"] == run].sort_values("step")
            series, label = _names(own.iloc[0])
            panel.line(series, own["D"], own[measure], color=colour, linewidth=0.8)
            panel.points(
                series,
                own["D"],
                own[measure],
                **bars(own, f"{measure}_se", measure),
                color=colour,
                markersize=3,
                label=label,
            )
        if measure == "error":
            D = [rows["D"].min(), rows["D"].max()]
            panel.line("guessing", D, [rows["chance"].iloc[0]] * 2, **guess)
        panel.ax.set_ylabel(MEASURES[measure])
        if by == GROUP:
            panel.title(f"{skill}")
        axes.log(panel.ax.xaxis, "training tokens", text=style.short)
    sheet.panels[1].key("guessing (left)", **guess)
    sheet.panels[1].legend()
    return sheet


def _names(run: pd.Series) -> tuple[str, str]:
    total, active = (style.short(run[name]) for name in ("N_total", "N_active"))
    if run["S"] > 0:
        return "mixture", f"MoE, $A$ = {percent(1 - run['S'])}:\n{active} of {total} active"
    return "dense", f"dense: {total}"
