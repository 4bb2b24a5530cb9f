"""Loss over what a sub-experiment varies (F3, F10a to F14c, F16), and over training (F6, F15)."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import GROUP, MEASURES
from moelaws.figures import axes, style
from moelaws.figures.axes import percent
from moelaws.figures.losses import bars
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.leverage.derived.series import SERIES

NEAR = 0.005  # near-optimal: within 0.5 % of the least loss of the size (App M, leverage)


def compared(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of a sweep, and how far each is above the least mean of its budget, %."""
    runs = SERIES[sweep].compared(inputs)
    return runs.assign(excess=100 * (runs["L"] / runs["C"].map(_least(runs)["L"]) - 1))


def least(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the x of the least mean loss of each budget."""
    return _least(SERIES[sweep].compared(inputs)).reset_index().assign(excess=0.0)


def _least(runs: pd.DataFrame) -> pd.DataFrame:
    means = runs.groupby(["C", "x"])["L"].mean().reset_index()  # over seeds
    return means.loc[means.groupby("C")["L"].idxmin()].set_index("C")


def parabola(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns how far the parabola that all budgets share (in ln L) lies above its least, %."""
    series = SERIES[sweep]
    shared = series.parabola(series.compared(inputs))
    if shared is None:
        return pd.DataFrame(columns=["x", "excess", "low", "high"], dtype=float)
    grid = np.linspace(shared.low, shared.high, 61)
    above = np.array([100 * shared.excess(t) for t in grid])
    known = above.shape[1] > 1
    low, high = np.quantile(above[:, 1:], [0.05, 0.95], axis=1) if known else (np.nan, np.nan)
    x = np.exp2(grid) if series.log2 else grid
    return pd.DataFrame({"x": x, "excess": above[:, 0], "low": low, "high": high})


def heads(inputs: Inputs, sweep: str) -> pd.DataFrame:
    """Returns the runs of a sweep with their ``size`` in words, and 1 where ``near`` the least."""
    runs = SERIES[sweep].runs(inputs)
    by_budget = runs.groupby("C")
    widths = by_budget["d_model"].transform(lambda d: ", ".join(map(str, sorted(d.unique()))))
    return runs.assign(
        near=(runs["L"] <= (1 + NEAR) * by_budget["L"].transform("min")).astype(int),
        size=[f"{d} ({axes.power(C)})" for d, C in zip(widths, runs["C"], strict=True)],
    )


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
