"""How evenly experts are used: a histogram of the load, and its evenness over training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS
from moelaws.studies.sectional.figures.arms import LOOKS

ONE = ["d_model", "context"]  # the size that is shown, the largest


def draw(inputs: Inputs) -> Sheet:
    """Draws the share of tokens by the expert's rank (a), and the variation over training (b)."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    shares, training = sheet.panels
    _shares(shares, largest(inputs.derived("shares")))
    _training(training, largest(inputs.derived("load")))
    shares.ax.set(xlabel="expert of a layer, busiest first", ylabel="share of held-out tokens")
    shares.ax.set_title("(a)", loc="left")
    training.ax.set(xlabel="training steps", ylabel="variation of tokens per expert")
    training.legend()
    return sheet


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the largest size and, of each arm, of one division into layers."""
    table = table.sort_values([*ONE, "n_dense_layers"], kind="stable")
    table = table[(table[ONE] == table[ONE].iloc[-1]).all(axis=1)] if len(table) else table
    usual = table.groupby("arm")["n_dense_layers"].transform(lambda n: n.mode().iloc[0])
    return table[table["n_dense_layers"] == usual]


def _shares(panel: Panel, table: pd.DataFrame) -> None:
    arms = [arm for arm in ARMS if arm in set(table["arm"])]
    if not arms:
        panel.message("no run with\nrouted experts completed")
        return
    width = 0.8 / len(arms)
    for place, arm in enumerate(arms):
        own = table[table["arm"] == arm].sort_values("rank")
        x = own["rank"].to_numpy(float) + (place - (len(arms) - 1) / 2) * width
        panel.sheet.record(panel.name, arm, x=own["rank"], y=own["share"])
        panel.ax.bar(x, own["share"], width, color=LOOKS[arm])
    even = 1 / len(set(table["rank"]))
    panel.ax.axhline(even, color=style.GREY, linewidth=0.8, linestyle="--")
    panel.ax.set_xticks(sorted(set(table["rank"])))


def _training(panel: Panel, table: pd.DataFrame) -> None:
    for arm in [arm for arm in ARMS if arm in set(table["arm"])]:
        own = table[(table["arm"] == arm) & ~table["held_out"]]
        by_step = own.groupby("step")["cv"].mean()
        steps = by_step.index.to_numpy(float)
        panel.line(arm, steps, by_step, color=LOOKS[arm], label=ARMS[arm], linewidth=0.9)
    panel.ax.set_ylim(bottom=np.minimum(0.0, panel.ax.get_ylim()[0]))
