"""F2a, F7: the best batch and learning rate over compute, of mixtures and of dense models."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter

from moelaws.analysis.hyperparameters.search import end_of_search
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.hyperparameters.common import (
    ASIDE,
    COLOURS,
    LABELS,
    MARKERS,
    fitted_line,
    legend_below,
    log_axes,
    published_line,
    span,
)
from moelaws.figures.sheet import Panel, Sheet

SETTINGS = {"batch_tokens": "batch", "lr": "lr"}  # column -> fit
AXES = {"batch_tokens": "batch $B$ (tokens)", "lr": r"peak learning rate $\eta$"}


def draw(inputs: Inputs, every: bool) -> Sheet:
    """Batch and learning rate over C: near-optimal runs, or ``every`` run, fits, and Eq 5."""
    sheet = Sheet(style.DOUBLE, 2.8, ["rectilinear"] * 2)
    search = inputs.derived("near_optimal")
    draws = inputs.derived("noise")
    draws = draws[draws["draw"] > 0]
    for panel, (column, fit) in zip(sheet.panels, SETTINGS.items(), strict=True):
        if every:
            panel.points(
                "search",
                *_aside(search, column),
                color="#d4d4d4",
                markersize=2.2,
                zorder=1,
                label="run of the search",
            )
        C = span(search["C"])
        powers = []
        for kind in LABELS:
            rows = search[(search["kind"] == kind) & (search["near"] == 1)]
            if not len(rows):
                continue
            name = fit if kind == "moe" else f"{fit}_dense"
            own = draws[(draws["kind"] == kind) & (draws["setting"] == column)]
            powers.append(fitted_line(panel, inputs.fit(name), own, kind, C))
            _near(panel, rows, kind, column)
        ref = f"leverage.hyperparameters:{fit}"
        published_line(panel, ref, C, "published (mixtures, Eq 5)")
        log_axes(panel, search["C"])
        panel.ax.set_ylabel(AXES[column])
        as_text = style.short if column == "batch_tokens" else "{:.3g}".format
        panel.ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _, f=as_text: f(y)))
        if every:
            _bounds(panel, search, column)
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet)
    return sheet


def _aside(rows: pd.DataFrame, column: str) -> tuple[pd.Series[float], pd.Series[float]]:
    """C, a little to the side of its kind of models, and the ``column``."""
    return rows["C"] * rows["kind"].map(ASIDE).astype(float), rows[column].astype(float)


def _near(panel: Panel, rows: pd.DataFrame, kind: str, column: str) -> None:
    panel.points(
        f"near-optimal, {kind}",
        *_aside(rows, column),
        color=COLOURS[kind],
        marker=MARKERS[kind],
        markerfacecolor="none",
        markeredgewidth=0.8,
        zorder=3,
        label=f"near-optimal, {LABELS[kind]}",
    )


def _bounds(panel: Panel, search: pd.DataFrame, column: str) -> None:
    """The best run of each budget; an arrow where the search ends there."""
    arrows = {"low": "v", "high": "^"}
    named: set[str] = set()
    for (_, _), group in search.groupby(["A", "C"]):
        best = group.iloc[[int(np.argmin(group["L"]))]]
        kind, end = str(best["kind"].iloc[0]), end_of_search(group, column)
        label = "best, at an end of the search" if end else "best of its budget"
        panel.points(
            label,
            *_aside(best, column),
            color=COLOURS[kind],
            marker=arrows.get(end, "*"),
            markersize=5 if end else 7,
            zorder=4,
        )
        if label not in named:
            marker = "^" if end else "*"
            panel.ax.plot([], [], marker, color=style.GREY, label=label)
            named.add(label)


FIGURES = {"F2a": partial(draw, every=False), "F7": partial(draw, every=True)}
