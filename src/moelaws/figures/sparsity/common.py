"""What the sparsity paper's figures share: colours by S and C, error bars, marks of optima."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.transforms import ScaledTranslation, Transform

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, NOT_CONVEX, Array
from moelaws.analysis.surface import Surface, surfaces
from moelaws.figures import style
from moelaws.figures.sheet import Panel
from moelaws.spec.errors import UserError

SPREAD = 3.6  # points between the bars of the first and the last budget

Colour = tuple[float, float, float, float]

# A bound is hollow and points to where the optimum must lie.
BOUNDS = {AT_LOW_END: "v", AT_HIGH_END: "^", NOT_CONVEX: "s"}
BOUND_LABELS = {
    AT_LOW_END: "bound: at or below the\nsmallest size measured",
    AT_HIGH_END: "bound: at or above the\nlargest size measured",
    NOT_CONVEX: "curve not convex:\nleast end shown",
}


def colours(inputs: Inputs, column: str) -> dict[float, Colour]:
    """A colour for each value of ``column`` in the whole table, the same in every figure."""
    values = sorted(float(v) for v in inputs.completed[column].dropna().unique())
    return dict(zip(values, style.ordered_colours(len(values)), strict=True))


def middle_surface(inputs: Inputs, fit: str) -> Surface:
    """The surface at the middle budget (the upper of two) of the fit ``fit``."""
    known = sorted(surfaces(inputs, fit), key=lambda surface: surface.C)
    if not known:
        raise UserError(f"fit {fit!r}: it has no part; no budget had enough completed runs")
    return known[len(known) // 2]


def bars(rows: pd.DataFrame) -> dict[str, Array]:
    """Ends of one standard error of the loss, clustered by document, where the rows have it."""
    L, se = rows["L"].to_numpy(float), rows["L_se"].to_numpy(float)
    return {"low": L - se, "high": L + se} if np.isfinite(se).any() else {}


def band(surface: Surface, N: Array, S: Array) -> dict[str, Array]:
    """The interval of the surface at sizes ``N`` (n,) and sparsities ``S`` (n,)."""
    drawn = surface.loss_draws(N, S)
    if not len(drawn):
        return {}
    low, high = np.quantile(drawn, [(1 - surface.level) / 2, (1 + surface.level) / 2], axis=0)
    return {"low": low, "high": high}


def optima_lines(panel: Panel, palette: Mapping[float, Colour], rows: pd.DataFrame, y: str) -> None:
    """The optima ``y`` over S: a line a budget, marks filled inside the measured range.

    Bars that would cover each other are drawn side by side; the recorded S is the true one.
    """
    if not rows[y].notna().any():
        panel.message("no optimum: each curve has\nfewer than three sizes")
        return
    style.sparsity_axis(panel.ax, rows["S"].unique())
    for i, (C, colour) in enumerate(palette.items()):
        budget = at(rows, "C", C)
        if len(budget):
            aside = (i / max(len(palette) - 1, 1) - 0.5) * SPREAD / 72
            shift = ScaledTranslation(aside, 0, panel.sheet.figure.dpi_scale_trans)
            _optima_line(panel, style.power(C), budget, y, colour, panel.ax.transData + shift)


def _optima_line(
    panel: Panel, label: str, rows: pd.DataFrame, y: str, colour: Colour, place: Transform
) -> None:
    low, high = y.replace("_star", "_low"), y.replace("_star", "_high")
    found = rows[rows[y].notna()].sort_values("S")
    panel.ax.plot(found["S"], found[y], color=colour, linewidth=0.9, zorder=2, transform=place)
    for note in sorted(set(found["note"].astype(str))):
        group = found[found["note"] == note]
        panel.points(
            label if not note else f"{label} ({note})",
            group["S"],
            group[y],
            group[low],
            group[high],
            color=colour,
            marker=BOUNDS.get(note, "o"),
            markerfacecolor=colour if not note else "white",
            zorder=3,
            transform=place,
        )
    panel.ax.plot([], [], color=colour, marker="o", linewidth=0.9, label=label)
    for row in rows[rows[y].isna()].itertuples():
        panel.sheet.warn(f"C={row.C:.3g}, S={row.S:g}: no optimum: {row.note}")


def explain_bounds(panel: Panel, optima: pd.DataFrame) -> None:
    """Legend entries for the hollow marks among ``optima`` and for those that are missing."""
    notes, missing = set(optima["note"]), int(optima["N_star"].isna().sum())
    for note, marker in BOUNDS.items():
        if note in notes:
            hollow: dict[str, Any] = {"marker": marker, "markerfacecolor": "white"}
            panel.ax.plot([], [], color=style.GREY, ls="none", label=BOUND_LABELS[note], **hollow)
    if missing:
        panel.ax.plot([], [], ls="none", label=f"{missing} without optimum:\nfewer than 3 sizes")
