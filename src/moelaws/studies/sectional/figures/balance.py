"""How evenly experts are used, what a fixed capacity would lose, and how alike they are."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, two_panels
from moelaws.studies.sectional.arms import ARMS, middle, widest
from moelaws.studies.sectional.figures.arms import LOOKS, name_of, size_name

# Column -> its axis, for each panel of a row.
BY_LAYER = {"cv": "variation of tokens per expert", "kl": "KL from equal use (nats)"}
OVER_TRAINING = {"overflow": "assignments beyond capacity", "unused": "capacity left empty"}
NOTHING = "no run with\nrouted experts completed"
FACTORS = {"1": "-", "1.25": style.DASHES}  # capacity factor -> line
PALE = 0.35


def balance(inputs: Inputs) -> Sheet:
    """Draws the fraction of tokens by the expert's rank (a) and the variation over training (b)."""
    sheet = two_panels()
    pictures = {"shares": _draw_fractions, "load": _draw_training}
    for panel, (name, picture) in zip(sheet.panels, pictures.items(), strict=True):
        table = middle(widest(inputs.derived(name)))
        if not len(table):
            panel.message(NOTHING)
            continue
        picture(panel, table)
        panel.title(size_name(table))
    return sheet


def _draw_fractions(panel: Panel, table: pd.DataFrame) -> None:
    arms = _arms(table)
    width = 0.8 / len(arms)
    for place, own in enumerate(arms):
        own = own.sort_values("rank")
        arm = own["arm"].iloc[0]
        x = own["rank"] + (place - (len(arms) - 1) / 2) * width
        panel.sheet.record(panel.name, arm, x=own["rank"], y=own["share"])
        panel.ax.bar(x, own["share"], width, color=LOOKS[arm])
    ranks = sorted(set(table["rank"]))
    panel.ax.axhline(1 / len(ranks), color=style.GREY, linewidth=0.8, linestyle="--")
    panel.ax.set_xticks(ranks)
    panel.ax.set(xlabel="expert of a layer, busiest first", ylabel="share of held-out tokens")


def _draw_training(panel: Panel, table: pd.DataFrame) -> None:
    for own in _arms(table[~table["held_out"]]):
        _mean(panel, own, "step", "cv", linewidth=0.9)
    panel.ax.set_ylim(bottom=np.minimum(0.0, panel.ax.get_ylim()[0]))
    panel.ax.set(xlabel="training steps", ylabel="variation of tokens per expert")
    panel.legend()


def capacity(inputs: Inputs) -> Sheet:
    """Draws evenness by layer on held-out text (a, b), overflow and unused over training (c, d)."""
    sheet = Sheet(style.DOUBLE, 4.6, 4, columns=2)
    table = middle(widest(inputs.derived("load")))
    if not len(table):
        return sheet.message(NOTHING)
    above, below = sheet.panels[:2], sheet.panels[2:]
    held_out, training = table[table["held_out"]], table[~table["held_out"]]
    for panel, (column, label) in zip(above, BY_LAYER.items(), strict=True):
        for own in _arms(held_out):
            _mean(panel, own, "layer", column, marker="o", markersize=3)
        panel.ax.set_xticks(sorted(set(held_out["layer"])))
        panel.ax.set(xlabel="layer", ylabel=label)
    for panel, (column, label) in zip(below, OVER_TRAINING.items(), strict=True):
        for own in _arms(training):
            for factor, dashes in FACTORS.items():
                name, of = f"{column}_{factor}", f"capacity factor {factor}"
                _mean(panel, own, "step", name, of, linestyle=dashes, linewidth=0.9)
        panel.ax.set(xlabel="training steps", ylabel=label)
    for panel in sheet.panels:
        panel.ax.set_ylim(bottom=0)
    above[0].title(size_name(table))
    named = above[0].ax.get_legend_handles_labels()
    sheet.figure.legend(*named, loc="outside lower center", ncols=3)
    for factor, dashes in FACTORS.items():
        label = f"capacity factor {factor}"
        below[1].ax.plot([], [], color=style.GREY, linestyle=dashes, label=label)
    below[1].ax.legend()
    return sheet


def _arms(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Returns the rows of each arm of the table, in the order of figures."""
    groups = dict(list(table.groupby("arm")))
    return [groups[arm] for arm in ARMS if arm in groups]


def _mean(panel: Panel, own: pd.DataFrame, x: str, y: str, of: str = "", **look: Any) -> None:
    """Draws the mean of ``y`` over ``x`` of one arm; a line ``of`` something has no label."""
    arm, means = own["arm"].iloc[0], own.groupby(x)[y].mean()
    series, label = (f"{arm}, {of}", "") if of else (arm, name_of(own.iloc[0]))
    panel.line(series, means.index, means, color=LOOKS[arm], label=label, **look)


def similarity(inputs: Inputs) -> Sheet:
    """Draws the mean cosine (a) and that of matched units beside random ones (b) over training."""
    sheet = two_panels()
    plain, units = sheet.panels
    table = middle(widest(inputs.derived("similarity")))
    if not len(table):
        return sheet.message(NOTHING)
    for own in _arms(table):
        _mean(plain, own, "step", "cosine", marker="o")
        _mean(units, own, "step", "matched", marker="o")
        _mean(units, own, "step", "random", "random", alpha=PALE, linestyle="--", linewidth=0.8)
    for panel, what in ((plain, "two experts' weights"), (units, "matched hidden units")):
        panel.ax.set(xlabel="training steps", ylabel=f"cosine of {what}")
        panel.title(size_name(table))
    units.legend()
    return sheet
