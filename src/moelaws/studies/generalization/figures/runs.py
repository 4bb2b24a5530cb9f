"""F1: validation loss over the routing term R; F2, F3: intrinsic dimension of the hidden states."""

from typing import Any

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.generalization.derived.dimension import MIDDLE


def routing(inputs: Inputs) -> Sheet:
    """Draws the least and the largest budget in a panel each, a line for each k, M beside marks."""
    runs = inputs.derived("runs", sweep="routing")
    budgets = sorted(float(D) for D in runs["D"].unique())
    budgets = budgets if len(budgets) < 3 else [budgets[0], budgets[-1]]
    sheet = Sheet(style.DOUBLE, style.HEIGHT, max(len(budgets), 1))
    active = sorted(int(k) for k in runs["k"].unique())
    for panel, D in zip(sheet.panels, budgets, strict=False):
        rows = runs[runs["D"] == D]
        for k, colour in zip(active, style.ordered_colours(len(active)), strict=True):
            _series(panel, rows[rows["k"] == k], k, colour, error_among(rows))
        panel.title(f"$D$ = {style.short(D)} tokens")
        R = r"routing term $R = k L_T\,l\,\ln(eM/k)$ (nats)"
        panel.ax.set(xlabel=R, ylabel="validation loss (nats/token)")
        panel.ax.margins(0.08, 0.14)
    if not budgets:
        sheet.panels[0].message("no completed run of the sweep routing")
    sheet.panels[-1].legend("active\nexperts $k$")
    return sheet


def _series(panel: Panel, rows: pd.DataFrame, k: int, colour: Any, error: str) -> None:
    """Draws the runs of one k at one budget: means over seeds, joined in the order of M."""
    if not len(rows):
        return
    mean = rows[["M", "R", "L", error]].groupby("M", as_index=False).mean()
    panel.ax.plot(mean["R"], mean["L"], color=colour, linewidth=0.9, zorder=2)
    ends = bars(mean, error)
    panel.points(f"k={k}", mean["R"], mean["L"], **ends, color=colour, label=f"{k}", zorder=3)
    beside = {"textcoords": "offset points", "xytext": (4, 3), "fontsize": 5.5}
    for row in mean.itertuples():
        panel.ax.annotate(f"{row.M}", (row.R, row.L), **beside, color=style.INK)


def dimension(inputs: Inputs, x: str) -> Sheet:
    """Draws the dimension over ``x``, which is layer or depth, with a line for each model."""
    table = inputs.derived("dimension")
    table = table[table["dimension"].notna()]
    sheet, panel = one_panel(style.SINGLE + 0.6)
    if not len(table):
        return panel.message("no hidden states:\nno completed run's weights are kept")
    models = table.groupby(["corpus", "n_layers", "width", "D", "seed", "run_id"], sort=True)
    corpora = sorted(table["corpus"].unique())
    several = len(corpora) > 1
    of_corpus = dict(zip(corpora, style.ordered_colours(len(corpora)), strict=True))
    colours = style.ordered_colours(models.ngroups)
    many = table.drop_duplicates("run_id")["D"].nunique() > 1
    for (key, rows), colour in zip(models, colours, strict=True):
        corpus, layers, width, D, seed, _ = key
        colour = of_corpus[corpus] if several else colour
        label = f"{layers} x {width}, seed {seed}"
        label += f", {style.short(float(str(D)))}" if many else ""
        label = f"{corpus}, {label}" if several else label
        low, high = (rows["dimension"] + sign * rows["mad"] for sign in (-1, 1))
        panel.ax.plot(rows[x], rows["dimension"], color=colour, linewidth=0.9)
        panel.points(label, rows[x], rows["dimension"], low, high, color=colour, label=label)
    if x == "depth":
        panel.ax.axvspan(*MIDDLE, color="#f0f0f0", zorder=0, linewidth=0)
        panel.ax.set_xlabel("relative depth: layer / layers")
    else:
        panel.ax.set_xlabel("layer (0: embedding)")
        panel.ax.xaxis.get_major_locator().set_params(integer=True)
    panel.ax.set_ylim(0, 1.08 * float((table["dimension"] + table["mad"]).max()))
    widths = ", ".join(f"{width}" for width in sorted(table["d_model"].unique()))
    panel.ax.set_ylabel(f"intrinsic dimension (width {widths})")
    panel.legend("layers x expert width")
    return sheet
