"""F2a and F7 show the best batch and learning rate of mixtures and dense models over compute."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.leverage import hyperparameters
from moelaws.studies.hyperparameters.derived.search import end_of_search
from moelaws.studies.hyperparameters.figures.common import (
    COLOURS,
    LABELS,
    MARKERS,
    SHIFTS,
    fitted_line,
    legend_below,
    log_axes,
    published_line,
    span,
)

SETTINGS = {"batch_tokens": "batch", "lr": "lr"}  # column -> fit
AXES = {"batch_tokens": "batch $B$ (tokens)", "lr": r"peak learning rate $\eta$"}


def draw(inputs: FittedInputs, all_runs: bool) -> Sheet:
    """Draws batch and learning rate over C: near-optimal runs, or ``all_runs`` too, and laws."""
    sheet = Sheet(style.DOUBLE, 2.8, ["rectilinear"] * 2)
    search = inputs.derived("near_optimal")
    draws = inputs.derived("noise")
    draws = draws[draws["draw"] > 0]
    for panel, (column, fit) in zip(sheet.panels, SETTINGS.items(), strict=True):
        if all_runs:
            panel.points(
                "search",
                *_shifted(search, column),
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
        published_line(panel, hyperparameters.VARIANTS[fit], C, "published (mixtures, Eq 5)")
        as_text = style.short if column == "batch_tokens" else "{:.3g}".format
        log_axes(panel, search["C"], as_text)
        panel.ax.set_ylabel(AXES[column])
        if all_runs:
            _best_runs(panel, search, column)
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet)
    return sheet


def _shifted(rows: pd.DataFrame, column: str) -> tuple[pd.Series[float], pd.Series[float]]:
    """Returns C, shifted a little for each kind of model, and the ``column``."""
    return rows["C"] * rows["kind"].map(SHIFTS).astype(float), rows[column].astype(float)


def _near(panel: Panel, rows: pd.DataFrame, kind: str, column: str) -> None:
    panel.points(
        f"near-optimal, {kind}",
        *_shifted(rows, column),
        color=COLOURS[kind],
        marker=MARKERS[kind],
        markerfacecolor="none",
        markeredgewidth=0.8,
        zorder=3,
        label=f"near-optimal, {LABELS[kind]}",
    )


def _best_runs(panel: Panel, search: pd.DataFrame, column: str) -> None:
    """Marks the best run of each budget, with an arrow where the search ends there."""
    arrows = {"low": "v", "high": "^"}
    explained: set[str] = set()
    for _, group in search.groupby(["A", "C"]):
        best = group.iloc[[int(np.argmin(group["L"]))]]
        kind, end = str(best["kind"].iloc[0]), end_of_search(group, column)
        label = "best, at an end of the search" if end else "best of its budget"
        panel.points(
            label,
            *_shifted(best, column),
            color=COLOURS[kind],
            marker=arrows.get(end, "*"),
            markersize=5 if end else 7,
            zorder=4,
        )
        if label not in explained:
            marker = "^" if end else "*"
            panel.ax.plot([], [], marker, color=style.GREY, label=label)
            explained.add(label)
