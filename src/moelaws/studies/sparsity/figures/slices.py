"""F2a-c: slices of the isoFLOP surface at the middle budget: along sparsity, and along size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm
from matplotlib.ticker import FixedLocator

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.fitting.quantiles import percentiles
from moelaws.studies.sparsity.derived.optima import surface_optima
from moelaws.studies.sparsity.derived.surface import Surface, middle_surface
from moelaws.studies.sparsity.figures.common import (
    BOUNDS,
    colours,
    explain_bounds,
)

POINTS = 61  # of a curve


def along_sparsity(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the loss over S: runs coloured by their size, and the surface at five sizes."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    draw_along_sparsity(sheet.panels[0], middle_surface(inputs, fit))
    return sheet


def along_size(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the loss over size: runs and the surface at each measured S, with its minimum."""
    sheet, panel = one_panel()
    optima = draw_along_size(panel, middle_surface(inputs, fit), colours(inputs, "S"))
    explain_optima(panel, optima)
    panel.legend("sparsity $S$")
    return sheet


def draw_along_sparsity(panel: Panel, surface: Surface) -> Colorbar:
    """Draws the loss over S at one budget, with a colour bar of the sizes."""
    rows = surface.rows
    style.sparsity_axis(panel.ax, sorted(rows["S"].unique()))
    N = rows[surface.size].to_numpy(float)
    norm = LogNorm(N.min(), N.max())
    curves = {size: _sparsities_measured_at(surface, size) for size in _round_quantiles(N)}
    curves = {size: S for size, S in curves.items() if len(S) > 1}
    for size, S in curves.items():
        at_size = np.full(len(S), size)
        panel.line(
            f"surface, N={size:g}",
            S,
            surface.loss(at_size, S),
            **_band(surface, at_size, S),
            color=style.ORDERED(norm(size)),
        )
    for size in sorted(rows[surface.size].unique()):
        group = rows[rows[surface.size] == size]
        panel.points(
            f"runs, N={size:g}",
            group["S"],
            group["L"],
            **bars(group, error_among(rows)),
            color=style.ORDERED(norm(size)),
            markeredgecolor="white",
            markeredgewidth=0.4,
            zorder=3,
        )
    bar = panel.sheet.figure.colorbar(ScalarMappable(norm, style.ORDERED), ax=panel.ax, pad=0.03)
    style.size_axis(bar.ax.yaxis, style.size_label(surface.size))
    bar.ax.yaxis.set_major_locator(FixedLocator(list(curves)))  # the curves' own sizes
    bar.outline.set_visible(False)
    panel.ax.set_ylabel("loss $L$ (nats/token)")
    panel.ax.set_title(f"$C$ = {style.power(surface.C)} FLOPs", loc="left")
    return bar


def draw_along_size(
    panel: Panel, surface: Surface, palette: Mapping[float, style.Colour]
) -> pd.DataFrame:
    """Draws the loss over size at one budget and returns the optima that it marks."""
    panel.ax.set_xscale("log")
    optima = list(surface_optima(surface))
    for best in optima:
        S, colour = best["S"], palette[best["S"]]
        rows = at(surface.rows, "S", S)
        u = np.log(rows[surface.size].to_numpy(float))
        N = np.exp(np.linspace(u.min(), u.max(), POINTS))
        at_S = np.full(POINTS, S)
        panel.line(
            f"surface, S={S:g}",
            N,
            surface.loss(N, at_S),
            **_band(surface, N, at_S),
            color=colour,
            label=f"{S:g}",
        )
        panel.points(
            f"runs, S={S:g}",
            rows[surface.size],
            rows["L"],
            **bars(rows, error_among(surface.rows)),
            color=colour,
            markersize=3,
        )
        panel.points(
            f"optimum, S={S:g}" + (f" ({best['note']})" if best["note"] else ""),
            best["N_star"],
            best["L_star"],
            markersize=8 if best["inside"] else 5,
            marker="*" if best["inside"] else BOUNDS.get(best["note"], ("s", ""))[0],
            zorder=4,
            markerfacecolor=colour if best["inside"] else "white",
            markeredgecolor=style.INK if best["inside"] else colour,
            markeredgewidth=0.6,
        )
    style.size_axis(panel.ax.xaxis, style.size_label(surface.size))
    panel.ax.set_ylabel("loss $L$ (nats/token)")
    panel.ax.set_title(f"$C$ = {style.power(surface.C)} FLOPs", loc="left")
    return pd.DataFrame(optima)


def explain_optima(panel: Panel, optima: pd.DataFrame) -> None:
    """Adds legend entries for the stars and for the hollow marks."""
    if optima["inside"].any():
        panel.ax.plot([], [], "*", markersize=8, color=style.GREY, label="optimum")
    explain_bounds(panel, optima)


def _band(surface: Surface, N: Array, S: Array) -> dict[str, Array]:
    """The interval of the surface at sizes ``N`` (n,) and sparsities ``S`` (n,)."""
    draws = surface.loss_draws(N, S)
    if not len(draws):
        return {}
    low, high = percentiles(draws, surface.level)
    return {"low": low, "high": high}


def _round_quantiles(N: Array) -> list[float]:
    """Five sizes spread over the measured ones, to two digits."""
    quantiles = np.exp(np.quantile(np.log(N), [0.1, 0.3, 0.5, 0.7, 0.9]))
    return sorted({float(f"{q:.1e}") for q in quantiles})


def _sparsities_measured_at(surface: Surface, size: float) -> Array:
    """Sparsities between which runs of about ``size`` were measured."""
    v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), POINTS)
    low, high = surface.sizes_near(v)
    return np.asarray(-np.expm1(-v[(low <= np.log(size)) & (np.log(size) <= high)]))
