"""F2b, F9: the best model scale and number of tokens over compute (leverage, Eq 6, Table 5)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter

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

AXES = {
    "M": r"best scale $M^\mathrm{opt}$ (FLOP/token)",
    "D": r"best data size $D^\mathrm{opt}$ (tokens)",
}
DASHES = {"moe": (4.0, 2.0), "dense": (1.0, 1.5)}


def draw(inputs: Inputs, parabolas: bool) -> Sheet:
    """M and D over C: the best run of each budget, a line through them, minima of ``parabolas``."""
    sheet = Sheet(style.DOUBLE, 3.0, ["rectilinear"] * 2)
    best = inputs.derived("best_sizes")
    for panel, x in zip(sheet.panels, AXES, strict=True):
        if not len(best):
            panel.message("no budget was trained\nat several model sizes")
            continue
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
            ref = f"leverage.allocation:{'' if kind == 'moe' else 'dense_'}{x}"
            label = f"published ({LABELS[kind]}, Table 5)"
            published_line(panel, ref, C, label, DASHES[kind])
        log_axes(panel, best["C"])
        panel.ax.set_ylabel(AXES[x])
        panel.ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: style.short(y)))
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet, ncols=3)
    return sheet


def _best(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """The run of least loss of each budget; hollow where no larger or smaller size was tried."""
    for end, group in rows.groupby("end"):
        panel.points(
            f"best run, {kind}" + (", a bound" if end else ""),
            group["C"] * ASIDE[kind],
            group[f"{x}_argmin"],
            color=COLOURS[kind],
            marker=MARKERS[kind],
            markerfacecolor="white" if end else COLOURS[kind],
            zorder=3,
            label=f"best run, {LABELS[kind]}" + (" (a bound)" if end else ""),
        )


def _minima(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """The minimum of a parabola through each budget's sizes; faint where it is a bound."""
    found = rows[rows[f"{x}_star"].notna()]
    panel.points(
        f"minimum of a parabola, {kind}",
        found["C"] * ASIDE[kind] ** 2.2,
        found[f"{x}_star"],
        found[f"{x}_low"].where(found["inside"], np.nan),
        found[f"{x}_high"].where(found["inside"], np.nan),
        color=COLOURS[kind],
        marker="D",
        markersize=3,
        alpha=0.55,
        zorder=2.5,
        label=f"parabola, {LABELS[kind]}",
    )
    for row in found[~found["inside"]].itertuples():
        panel.sheet.warn(f"{kind}, C={row.C:.3g}: the parabola's minimum is a bound: {row.note}")


FIGURES = {"F2b": partial(draw, parabolas=False), "F9": partial(draw, parabolas=True)}
