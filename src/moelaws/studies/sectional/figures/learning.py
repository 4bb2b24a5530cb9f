"""Learning curves of the arms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import ARMS, DENSE, SIZE
from moelaws.studies.sectional.figures.arms import LOOKS
from moelaws.studies.sectional.learning import smoothed

POINTS = 80  # of a curve
SKIPPED = 0.05  # of the steps: the first, where the smoothed loss still averages few of them
SHOWN = {"slice_all": 4, "slice_chunks": 4}  # slices, where an arm has several numbers of them


def draw(inputs: Inputs) -> Sheet:
    """Draws the smoothed training loss of each arm (a), and less the dense model's (b), seed 0."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    losses, differences = sheet.panels
    differences.ax.axhline(0, color=LOOKS[DENSE], linewidth=0.8, label=ARMS[DENSE])
    curves = {arm: curve for arm in ARMS if (curve := _curve(inputs, arm)) is not None}
    for arm, (tokens, loss) in curves.items():
        label = ARMS[arm] + (f", $E$ = {SHOWN[arm]}" if arm in SHOWN else "")
        losses.line(arm, tokens, loss, color=LOOKS[arm], label=label, linewidth=0.9)
        if arm != DENSE and DENSE in curves and len(curves[DENSE][1]) == len(loss):
            less = loss - curves[DENSE][1]
            differences.line(arm, tokens, less, color=LOOKS[arm], label=label, linewidth=0.9)
    losses.ax.set_ylabel("training loss (nats/token)")
    differences.ax.set_ylabel("less the dense model's")
    for panel in sheet.panels:
        panel.ax.set_xlabel("training tokens")
        panel.ax.xaxis.set_major_formatter(lambda x, _: style.short(x))
    losses.ax.set_title("(a)", loc="left")
    differences.legend()
    return sheet


def _curve(inputs: Inputs, arm: str) -> tuple[Array, Array] | None:
    """Returns tokens and smoothed loss of the arm's first run of the largest size."""
    runs = inputs.sweep(arm).sort_values([*SIZE, "seed", "n_dense_layers"], kind="stable")
    if arm in SHOWN:
        runs = runs[runs["E"] == SHOWN[arm]]
    if not len(runs):
        return None
    largest = runs[(runs[SIZE] == runs[SIZE].iloc[-1]).all(axis=1)]
    history: pd.DataFrame = inputs.history(str(largest["run_id"].iloc[0]))
    loss = smoothed(history["loss"].to_numpy(float))
    places = np.unique(np.linspace(SKIPPED * len(loss), len(loss) - 1, POINTS).astype(int))
    return history["tokens"].to_numpy(float)[places], loss[places]
