"""F2b and F9 show the best model scale and number of tokens over compute (leverage, Table 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.leverage import allocation
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

AXES = {
    "M": r"best scale $M^\mathrm{opt}$ (FLOP/token)",
    "D": r"best data size $D^\mathrm{opt}$ (tokens)",
}
DASHES = {"moe": (4.0, 2.0), "dense": (1.0, 1.5)}


def draw(inputs: FittedInputs, parabolas: bool) -> Sheet:
    """Draws M and D over C: the best run of each budget, lines, and minima of ``parabolas``."""
    sheet = Sheet(style.DOUBLE, 3.0, ["rectilinear"] * 2)
    best = inputs.derived("best_sizes")
    for panel, x in zip(sheet.panels, AXES, strict=True):
        C = span(best["C"])
        powers = []
        for kind in LABELS:
            rows = best[best["kind"] == kind]
            if not len(rows):
                continue
            fit = x if kind == "moe" else f"{x}_dense"
            powers.append(fitted_line(panel, inputs.fit(fit), inputs.draws(fit), kind, C))
            _best(panel, rows, kind, x)
            if parabolas:
                _minima(panel, rows, kind, x)
        for kind in LABELS:
            law = allocation.VARIANTS[x if kind == "moe" else f"dense_{x}"]
            label = f"published ({LABELS[kind]}, Table 5)"
            published_line(panel, law, C, label, DASHES[kind])
        log_axes(panel, best["C"], style.short)
        panel.ax.set_ylabel(AXES[x])
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet, ncols=3)
    return sheet


def _best(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the best run of each budget, hollow where its size is an end of those tried."""
    for end, group in rows.groupby("end"):
        panel.points(
            f"best run, {kind}" + (", a bound" if end else ""),
            group["C"] * SHIFTS[kind],
            group[f"{x}_argmin"],
            color=COLOURS[kind],
            marker=MARKERS[kind],
            markerfacecolor="white" if end else COLOURS[kind],
            zorder=3,
            label=f"best run, {LABELS[kind]}" + (" (a bound)" if end else ""),
        )


def _minima(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the minimum of each budget's parabola, without an interval where it is a bound."""
    minima = rows[rows[f"{x}_star"].notna()]
    panel.points(
        f"minimum of a parabola, {kind}",
        minima["C"] * SHIFTS[kind] ** 2.2,
        minima[f"{x}_star"],
        minima[f"{x}_low"].where(minima["inside"], np.nan),
        minima[f"{x}_high"].where(minima["inside"], np.nan),
        color=COLOURS[kind],
        marker="D",
        markersize=3,
        alpha=0.55,
        zorder=2.5,
        label=f"parabola, {LABELS[kind]}",
    )
    for row in minima[~minima["inside"]].itertuples():
        panel.sheet.warn(f"{kind}, C={row.C:.3g}: the parabola's minimum is a bound: {row.note}")
