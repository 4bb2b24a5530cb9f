"""F1a, F1b: the isoFLOP surface of the loss over model size and sparsity at the middle budget."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.derived.optima import surface_optima
from moelaws.studies.sparsity.derived.surface import Surface, middle_surface

MESH = 33  # points a side

Mesh = tuple[Array, Array, Array]


def draw(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the surface in perspective with the measured runs, and as contours with its valley."""
    surface = middle_surface(inputs, fit)
    sheet = Sheet(style.DOUBLE, 3.0, ["3d", "rectilinear"])
    mesh = filled_mesh(surface)
    norm = loss_colours(surface, mesh)
    perspective(sheet.panels[0], surface, mesh, norm)
    contours(sheet.panels[1], surface, mesh, norm)
    sheet.panels[1].legend(loc="lower right", bbox_to_anchor=(1, 1.01), ncols=3, columnspacing=1.2)
    return sheet


def filled_mesh(surface: Surface) -> Mesh:
    """Returns sizes, sparsities and losses (MESH, MESH) that fill what was measured, no more."""
    v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), MESH)
    low, high = (ends[:, None] for ends in surface.sizes_near(v))
    u = low + (high - low) * np.linspace(0, 1, MESH)
    N, S = np.exp(u), np.broadcast_to(-np.expm1(-v)[:, None], u.shape)
    return N, S, surface.loss(N.ravel(), S.ravel()).reshape(N.shape)


def loss_colours(surface: Surface, mesh: Mesh) -> Normalize:
    """Returns one scale of colours for the surface and the runs."""
    both = np.concatenate([mesh[2].ravel(), surface.rows["L"].to_numpy(float)])
    return Normalize(float(both.min()), float(both.max()))


def perspective(panel: Panel, surface: Surface, mesh: Mesh, norm: Normalize) -> None:
    """Draws the surface in perspective with the runs and their distance from it."""
    N, S, L = mesh
    rows, ax = surface.rows, panel.ax
    sparsities = style.apart(sorted(rows["S"].unique()), 0.13)
    ax.plot_surface(
        np.log10(N),
        -np.log1p(-S),
        L,
        cmap=style.ORDERED,
        norm=norm,
        alpha=0.75,
        linewidth=0,
        rcount=MESH,
        ccount=MESH,
    )
    u, v = np.log10(rows[surface.size]), -np.log1p(-rows["S"])
    fitted = surface.loss(rows[surface.size].to_numpy(float), rows["S"].to_numpy(float))
    for x, y, low, high in zip(u, v, fitted, rows["L"], strict=True):
        ax.plot([x, x], [y, y], [low, high], color=style.INK, linewidth=0.5)
    ax.scatter(u, v, rows["L"], color=style.INK, s=6, depthshade=False)
    ticks = style.round_ticks(10 ** u.min(), 10 ** u.max(), 4)
    ax.xaxis.set_major_locator(FixedLocator([float(np.log10(t)) for t in ticks]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: style.short(10**x)))
    ax.yaxis.set_major_locator(FixedLocator([-float(np.log1p(-s)) for s in sparsities]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{-np.expm1(-y):.4g}"))
    ax.set_xlabel(style.size_symbol(surface.size), labelpad=-4)
    ax.set_ylabel("$S$", labelpad=-4)
    ax.set_title(
        f"({panel.name}) loss (nats/token), $C$ = {style.power(surface.C)} FLOPs", loc="left"
    )
    ax.tick_params(pad=-2, labelsize=6)
    ax.view_init(elev=28, azim=-62)
    ax.set_box_aspect((1.25, 1.15, 0.9), zoom=1.08)
    panel.sheet.record(panel.name, "surface", x=N.ravel(), y=S.ravel(), z=L.ravel())
    panel.sheet.record(panel.name, "runs", x=rows[surface.size], y=rows["S"], z=rows["L"])


def contours(panel: Panel, surface: Surface, mesh: Mesh, norm: Normalize) -> None:
    """Draws the surface's contours, the runs coloured by their loss and the optimum of each S."""
    N, S, L = mesh
    rows, ax = surface.rows, panel.ax
    style.sparsity_axis(ax, sorted(rows["S"].unique()), "y")
    ax.set_xscale("log")
    filled = ax.contourf(N, S, L, levels=14, cmap=style.ORDERED, norm=norm)
    ax.contour(N, S, L, levels=filled.levels, colors="white", linewidths=0.3)
    ax.scatter(
        rows[surface.size],
        rows["S"],
        c=rows["L"],
        cmap=style.ORDERED,
        norm=norm,
        s=16,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )
    ax.plot([], [], "o", color=style.GREY, label="runs")
    optima = [o for o in surface_optima(surface) if np.isfinite(o["N_star"])]
    for inside, face, label in (
        (True, "white", "optimum"),
        (False, "none", "bound of the optimum"),
    ):
        chosen = [o for o in optima if o["inside"] is inside]
        if chosen:
            panel.points(
                label,
                [o["N_star"] for o in chosen],
                [o["S"] for o in chosen],
                marker="*",
                markersize=8,
                markerfacecolor=face,
                markeredgecolor=style.INK,
                markeredgewidth=0.7,
                zorder=4,
                label=label,
            )
    ax.grid(False)
    stretch = (N.max() / N.min()) ** 0.04
    ax.set_xlim(N.min() / stretch, N.max() * stretch)
    style.size_axis(ax.xaxis, style.size_label(surface.size))
    bar = panel.sheet.figure.colorbar(filled, ax=ax, pad=0.02)
    bar.set_label("loss (nats/token)")
    bar.outline.set_visible(False)
