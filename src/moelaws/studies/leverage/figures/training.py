"""F6a: training loss of a mixture of experts beside a dense model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.leverage.figures.common import log_axis, percent

BINS = 60  # over ln(tokens): a step's loss is noisy


def draw(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the training loss over tokens, a mean a bin, and marks the final validation loss."""
    sheet, panel = one_panel()
    runs = inputs.sweep(sweep).sort_values("N_total")
    if not len(runs):
        panel.message(f"no run of the sweep {sweep}\ncompleted")
        return sheet
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
