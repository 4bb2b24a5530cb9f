"""F8 maps the loss over learning rate and batch, with near-optimal runs and the laws' values."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Rectangle

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.leverage import hyperparameters
from moelaws.studies.hyperparameters.figures.laws import legend_below, published

# Percent above the least loss. Runs of the first step are those that the paper calls near-optimal.
STEPS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SHADES = ListedColormap(style.ordered_colours(len(STEPS)), "excess")
NORM = BoundaryNorm(STEPS, SHADES.N, extend="max")
FRAME = "#e8352e"
PANELS = 4  # at most this many panels are drawn


def over_activation(inputs: FittedInputs) -> Sheet:
    """Maps the largest budget searched, a panel for each activation ratio; dense is A = 1."""
    search = inputs.derived("near_optimal")
    C = float(search["C"].max())
    groups = [(_architecture(rows), rows) for _, rows in at(search, "C", C).groupby("A")]
    return _sheet(inputs, groups, f"$C$ = {style.power(C)} FLOPs")


def over_compute(inputs: FittedInputs, kind: str) -> Sheet:
    """Maps budgets in a panel each, for mixtures at the paper's ratio or for dense models."""
    search = inputs.derived("near_optimal", kind=kind)
    if kind == "moe" and len(search):  # all other ratios were searched at the largest budget alone
        ratio = search.groupby("A")["C"].nunique().idxmax()
        search = search[search["A"] == ratio]
    budgets = np.sort(search["C"].astype(float).unique())
    places = np.linspace(0, len(budgets) - 1, min(PANELS, len(budgets))).round().astype(int)
    groups = [(f"$C$ = {style.power(C)}", at(search, "C", C)) for C in budgets[np.unique(places)]]
    return _sheet(inputs, groups, _architecture(search) if len(search) else "")


def _architecture(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    return "dense" if row["A"] == 1 else f"{row['k']:.0f} of {row['E']:.0f}, $A$ = {row['A']:.3f}"


def _sheet(inputs: FittedInputs, groups: list[tuple[str, pd.DataFrame]], common: str) -> Sheet:
    """Draws a map of each group of runs, titled by its name, with one legend titled ``common``."""
    groups = groups[-PANELS:]
    n = max(len(groups), 1)
    sheet = Sheet(max(style.SINGLE, 1.4 + 1.45 * n), 2.8, n)
    if not groups:
        return sheet.panels[0].message("no run of this search\nis completed")
    for panel, (name, rows) in zip(sheet.panels, groups, strict=True):
        _cells(panel, rows)
        _predicted(panel, inputs, float(rows["C"].iloc[0]))
        _axes(panel, rows)
        panel.title(name)
    sheet.panels[0].ax.set_ylabel("batch $B$ (tokens)")
    axes = [panel.ax for panel in sheet.panels]
    bar = sheet.figure.colorbar(ScalarMappable(NORM, SHADES), ax=axes, pad=0.02)
    bar.set_label("loss above the least (%)")
    bar.outline.set_visible(False)
    limits = np.array([panel.ax.get_ylim() for panel in sheet.panels])
    for panel in sheet.panels:
        panel.ax.set_ylim(limits.min(), limits.max())
        panel.ax.tick_params(labelleft=panel is sheet.panels[0])
    legend_below(sheet, common, ncols=4 if n > 2 else 2)
    return sheet


def _cells(panel: Panel, rows: pd.DataFrame) -> None:
    """Draws a cell for each run, coloured by its excess loss and framed where near-optimal."""
    edges = {name: _edges(rows[name]) for name in ("lr", "batch_tokens")}
    percent = 100 * rows["excess"].to_numpy(float)
    panel.sheet.record(panel.name, "runs", x=rows["lr"], y=rows["batch_tokens"], z=percent)
    settings = zip(rows["lr"], rows["batch_tokens"], rows["near"], percent, strict=True)
    for lr, batch, near, excess in settings:
        (left, right), (low, high) = edges["lr"][lr], edges["batch_tokens"][batch]
        edge, width, order = (FRAME, 1.4, 2.5) if near else ("white", 0.5, 2)
        look = {"facecolor": SHADES(NORM(excess)), "edgecolor": edge, "linewidth": width}
        cell = Rectangle((left, low), right - left, high - low, **look, zorder=order)
        panel.ax.add_patch(cell)
    best = rows.iloc[[int(np.argmin(rows["L"]))]]
    star: dict[str, Any] = {"marker": "*", "markersize": 7, "color": "white", "zorder": 4}
    star |= {"markeredgecolor": style.INK, "markeredgewidth": 0.5, "label": "best run"}
    panel.points("best run", best["lr"], best["batch_tokens"], **star)
    frame = {"markerfacecolor": "none", "color": FRAME, "label": "near-optimal ($\\leq$ 0.25 %)"}
    panel.ax.plot([], [], "s", **frame)


def _edges(values: pd.Series) -> dict[float, tuple[float, float]]:
    """Returns the ends of each value's cell, halfway to its neighbours in logarithms."""
    known = np.sort(values.astype(float).unique())
    steps = np.diff(np.log(known)) if len(known) > 1 else np.array([np.log(2.0)])
    half = np.concatenate([steps[:1], steps, steps[-1:]]) / 2
    return {
        v: (float(v * np.exp(-half[i])), float(v * np.exp(half[i + 1])))
        for i, v in enumerate(known)
    }


def _predicted(panel: Panel, inputs: FittedInputs, C: float) -> None:
    """Marks the learning rate and batch of the fitted laws and of Eq 5 at this budget."""
    fitted, printed = {}, {}
    for name in ("lr", "batch"):
        law = inputs.fit(name).parts[0].estimates()
        fitted[name] = law["coefficient"] * C ** law["exponent"]
        printed[name] = published(hyperparameters.VARIANTS[name], np.array([C]))
    marks = (
        ("fitted law (mixtures)", fitted, {"marker": "X", "color": "#e07b00"}),
        ("published (Eq 5)", printed, {"marker": "P", "color": style.GREY}),
    )
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "markersize": 6}
    for label, law_at, look in marks:
        panel.points(label, law_at["lr"], law_at["batch"], **edge, **look, zorder=5, label=label)


def _axes(panel: Panel, rows: pd.DataFrame) -> None:
    """Sets logarithmic axes that show the cells, and the laws' values where they lie beyond."""
    ax = panel.ax
    ax.set(xscale="log", yscale="log")
    marks = panel.sheet.data
    marks = marks[marks["panel"] == panel.name]
    for axis, name, column in ((ax.xaxis, "lr", "x"), (ax.yaxis, "batch_tokens", "y")):
        ends = [end for pair in _edges(rows[name]).values() for end in pair]
        pad = 1.12
        low = min(min(ends), float(marks[column].min()) / pad)
        high = max(max(ends), float(marks[column].max()) * pad)
        axis.axes.set(**{f"{column}lim": (low / 1.03, high * 1.03)})
        values = np.sort(rows[name].astype(float).unique())
        as_text = style.short if name == "batch_tokens" else lambda lr: f"{1e3 * lr:.2g}"
        style.fixed_ticks(axis, values[:: 2 if len(values) > 4 else 1], as_text)
    ax.grid(False)
    ax.set_xlabel(r"peak rate $\eta$ ($10^{-3}$)")
