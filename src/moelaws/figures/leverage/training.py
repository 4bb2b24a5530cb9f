"""F6a: training loss of a mixture of experts beside a dense model (the sweep `validation`)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.leverage.common import log_axis, percent
from moelaws.figures.sheet import Sheet

BINS = 60  # over ln(tokens): a step's loss is noisy


def draw(inputs: Inputs) -> Sheet:
    """Training loss over tokens, each bin's mean, with the final validation loss as a mark."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    runs = inputs.sweep("validation").sort_values("N_total")
    if not len(runs):
        panel.message("no run of the validation pair completed")
        return sheet
    for (_, run), colour in zip(runs.iterrows(), style.ordered_colours(len(runs)), strict=True):
        dense = run["S"] == 0
        total, active = (style.short(run[name]) for name in ("N_total", "N_active"))
        mixture = f"MoE, $A$ = {percent(1 - run['S'])}:\n{active} of {total} active"
        label = f"dense: {total}" if dense else mixture
        history = _smooth(inputs.history(str(run["run_id"])))
        series = "dense" if dense else "mixture"
        panel.line(series, history["tokens"], history["loss"], color=colour, label=label)
        panel.points(f"{series}, validation", [run["D"]], [run["L"]], color=colour, zorder=3)
    panel.ax.plot([], [], color=style.GREY, marker="o", ls="none", label="validation loss")
    panel.ax.set_ylabel("training loss (nats/token)")
    panel.ax.set_xscale("log")
    log_axis(panel.ax.xaxis, "training tokens", text=style.short)
    panel.legend()
    return sheet


def _smooth(history: pd.DataFrame) -> pd.DataFrame:
    """Means of the loss over equal bins of ln(tokens), leaving the first hundredth out."""
    kept = history[history["tokens"] >= history["tokens"].max() / 100]
    edges = np.geomspace(kept["tokens"].min(), kept["tokens"].max() * (1 + 1e-9), BINS + 1)
    bins = np.digitize(kept["tokens"], edges)
    means: pd.DataFrame = kept.groupby(bins)[["tokens", "loss"]].mean()
    return means


FIGURES = {"F6a": draw}
