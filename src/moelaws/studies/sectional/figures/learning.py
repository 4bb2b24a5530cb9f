"""Learning curves of the arms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import ARMS, DENSE, middle, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_title
from moelaws.studies.sectional.learning import smoothed

POINTS = 80  # of a curve
SKIPPED = 0.05  # of the steps: the first, where the smoothed loss still averages few of them
SHOWN = {"slice_all": 4, "slice_chunks": 4}  # slices, where an arm has several numbers of them


def draw(inputs: Inputs) -> Sheet:
    """Draws the smoothed training loss of each arm (a), and less the dense model's (b), seed 0."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    losses, differences = sheet.panels
    differences.ax.axhline(0, color=LOOKS[DENSE], linewidth=0.8, label=ARMS[DENSE])
    shown = _shown(inputs)
    curves = {row["arm"]: _curve(inputs, row["run_id"]) for _, row in shown.iterrows()}
    for _, row in shown.iterrows():
        arm, label = row["arm"], name_of(row)
        tokens, loss = curves[arm]
        losses.line(arm, tokens, loss, color=LOOKS[arm], label=label, linewidth=0.9)
        if arm != DENSE and DENSE in curves:
            less = loss - curves[DENSE][1]
            differences.line(arm, tokens, less, color=LOOKS[arm], label=label, linewidth=0.9)
    losses.ax.set_ylabel("training loss (nats/token)")
    differences.ax.set_ylabel("less the dense model's")
    for panel in sheet.panels:
        panel.ax.set_xlabel("training tokens")
        panel.ax.xaxis.set_major_formatter(lambda x, _: style.short(x))
    if len(shown):
        losses.ax.set_title(size_title(losses, shown), loc="left")
    differences.legend()
    return sheet


def _shown(inputs: Inputs) -> pd.DataFrame:
    """Returns a run of each arm, of the widest model and the first seed that most arms have."""
    runs = pd.concat([inputs.sweep(arm).assign(arm=arm) for arm in ARMS])
    runs = runs[(runs["arm"].map(SHOWN) == runs["E"]) | ~runs["arm"].isin(SHOWN)]
    runs = middle(widest(runs))
    counts = runs.groupby("seed").size()
    return runs[runs["seed"] == counts.idxmax()] if len(runs) else runs


def _curve(inputs: Inputs, run_id: str) -> tuple[Array, Array]:
    """Returns tokens and smoothed loss of a run."""
    history = inputs.history(run_id)
    loss = smoothed(history["loss"].to_numpy(float))
    places = np.unique(np.linspace(SKIPPED * len(loss), len(loss) - 1, POINTS).astype(int))
    return history["tokens"].to_numpy(float)[places], loss[places]
