"""How evenly experts are used: a histogram of the load, and its evenness over training."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, middle, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_title


def draw(inputs: Inputs) -> Sheet:
    """Draws the share of tokens by the expert's rank (a), and the variation over training (b)."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, ["rectilinear"] * 2)
    for panel, name, picture in zip(
        sheet.panels, ("shares", "load"), (_shares, _training), strict=True
    ):
        table = middle(widest(inputs.derived(name)))
        if not len(table):
            panel.message("no run with\nrouted experts completed")
            continue
        picture(panel, table)
        panel.ax.set_title(size_title(panel, table), loc="left")
    return sheet


def _shares(panel: Panel, table: pd.DataFrame) -> None:
    arms = [arm for arm in ARMS if arm in set(table["arm"])]
    width = 0.8 / len(arms)
    for place, arm in enumerate(arms):
        own = table[table["arm"] == arm].sort_values("rank")
        x = own["rank"].to_numpy(float) + (place - (len(arms) - 1) / 2) * width
        panel.sheet.record(panel.name, arm, x=own["rank"], y=own["share"])
        panel.ax.bar(x, own["share"], width, color=LOOKS[arm])
    even = 1 / len(set(table["rank"]))
    panel.ax.axhline(even, color=style.GREY, linewidth=0.8, linestyle="--")
    panel.ax.set_xticks(sorted(set(table["rank"])))
    panel.ax.set(xlabel="expert of a layer, busiest first", ylabel="share of held-out tokens")


def _training(panel: Panel, table: pd.DataFrame) -> None:
    for arm in [arm for arm in ARMS if arm in set(table["arm"])]:
        own = table[(table["arm"] == arm) & ~table["held_out"]]
        by_step = own.groupby("step")["cv"].mean()
        steps = by_step.index.to_numpy(float)
        label = name_of(own.iloc[0]) if len(own) else ARMS[arm]
        panel.line(arm, steps, by_step, color=LOOKS[arm], label=label, linewidth=0.9)
    panel.ax.set_ylim(bottom=np.minimum(0.0, panel.ax.get_ylim()[0]))
    panel.ax.set(xlabel="training steps", ylabel="variation of tokens per expert")
    panel.legend()
