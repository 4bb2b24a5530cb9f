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
    for place, (arm, own) in enumerate(arms):
        own = own.sort_values("rank")
        x = own["rank"].to_numpy(float) + (place - (len(arms) - 1) / 2) * width
        panel.sheet.record(panel.name, arm, x=own["rank"], y=own["share"])
        panel.ax.bar(x, own["share"], width, color=LOOKS[arm])
    ranks = sorted(set(table["rank"]))
    panel.ax.axhline(1 / len(ranks), color=style.GREY, linewidth=0.8, linestyle="--")
    panel.ax.set_xticks(ranks)
    panel.ax.set(xlabel="expert of a layer, busiest first", ylabel="share of held-out tokens")


def _draw_training(panel: Panel, table: pd.DataFrame) -> None:
    for arm, both in _arms(table):
        own = both[~both["held_out"]]
        by_step = own.groupby("step")["cv"].mean()
        label = name_of(own.iloc[0]) if len(own) else ARMS[arm]
        panel.line(arm, by_step.index, by_step, color=LOOKS[arm], label=label, linewidth=0.9)
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
        for arm, own in _arms(held_out):
            means = own.groupby("layer")[column].mean()
            look: dict[str, Any] = {"label": name_of(own.iloc[0]), "marker": "o", "markersize": 3}
            panel.line(arm, means.index, means, color=LOOKS[arm], **look)
        panel.ax.set_xticks(sorted(set(held_out["layer"])))
        panel.ax.set(xlabel="layer", ylabel=label)
    for panel, (column, label) in zip(below, OVER_TRAINING.items(), strict=True):
        for arm, own in _arms(training):
            for factor, dashes in FACTORS.items():
                means = own.groupby("step")[f"{column}_{factor}"].mean()
                look = {"color": LOOKS[arm], "linestyle": dashes, "linewidth": 0.9}
                panel.line(f"{arm}, capacity factor {factor}", means.index, means, **look)
        panel.ax.set(xlabel="training steps", ylabel=label)
    for panel in sheet.panels:
        panel.ax.set_ylim(bottom=0)
    above[0].title(size_name(table))
    handles, labels = above[0].ax.get_legend_handles_labels()
    sheet.figure.legend(handles, labels, loc="outside lower center", ncols=3)
    for factor, dashes in FACTORS.items():
        label = f"capacity factor {factor}"
        below[1].ax.plot([], [], color=style.GREY, linestyle=dashes, label=label)
    below[1].ax.legend()
    return sheet


def _arms(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Returns the arms of the table with their rows, in the order of figures."""
    groups = dict(list(table.groupby("arm")))
    return [(arm, groups[arm]) for arm in ARMS if arm in groups]


def similarity(inputs: Inputs) -> Sheet:
    """Draws the mean cosine (a) and that of matched units beside random ones (b) over training."""
    sheet = two_panels()
    plain, units = sheet.panels
    table = middle(widest(inputs.derived("similarity")))
    if not len(table):
        return sheet.message(NOTHING)
    for arm, own in _arms(table):
        means: pd.DataFrame = own.groupby("step").mean(numeric_only=True)
        look: dict[str, Any] = {"color": LOOKS[arm], "marker": "o", "label": name_of(own.iloc[0])}
        plain.line(arm, means.index, means["cosine"], **look)
        units.line(arm, means.index, means["matched"], **look)
        pale: dict[str, Any] = {"color": LOOKS[arm], "alpha": PALE, "linestyle": "--"}
        units.line(f"{arm}, random", means.index, means["random"], **pale, linewidth=0.8)
    for panel, what in ((plain, "two experts' weights"), (units, "matched hidden units")):
        panel.ax.set(xlabel="training steps", ylabel=f"cosine of {what}")
        panel.title(size_name(table))
    units.legend()
    return sheet
