"""F1a, F1b: isoFLOP surfaces at the middle budget; F2a-c: their slices; F8, F9: every budget."""

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
from moelaws.figures.losses import bars, error_among, observed_over_predicted
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.fitting.quantiles import percentiles
from moelaws.spec.words import counted
from moelaws.studies.sparsity.derived.optima import size_optima
from moelaws.studies.sparsity.derived.surface import Surface, middle_surface, surfaces
from moelaws.studies.sparsity.figures.common import BOUNDS, colours, explain_bounds

MESH = 33  # points a side
POINTS = 61  # of a curve
ROW = 2.15  # inches for each budget
NOTHING = "no budget had enough\ncompleted runs for a surface"


def surface(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the surface in perspective with the measured runs, and as contours with its valley."""
    surface = middle_surface(inputs, fit)
    sheet = Sheet(style.DOUBLE, 3.0, ["3d", "rectilinear"])
    perspective(sheet.panels[0], surface)
    contours(sheet.panels[1], surface)
    sheet.panels[1].legend(loc="lower right", bbox_to_anchor=(1, 1.01), ncols=3, columnspacing=1.2)
    return sheet


def filled_mesh(surface: Surface) -> tuple[Array, Array, Array]:
    """Returns sizes, sparsities and losses (MESH, MESH) that fill the range measured at each S."""
    v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), MESH)
    low, high = (ends[:, None] for ends in surface.sizes_near(v))
    u = low + (high - low) * np.linspace(0, 1, MESH)
    N, S = np.exp(u), np.broadcast_to(-np.expm1(-v)[:, None], u.shape)
    return N, S, surface.loss(N.ravel(), S.ravel()).reshape(N.shape)


def loss_colours(surface: Surface, L: Array) -> Normalize:
    """Returns one scale of colours for the losses ``L`` of the surface and those of the runs."""
    both = np.concatenate([L.ravel(), surface.rows["L"].to_numpy(float)])
    return Normalize(float(both.min()), float(both.max()))


def perspective(panel: Panel, surface: Surface) -> None:
    """Draws the surface in perspective with the runs and their distance from it."""
    N, S, L = filled_mesh(surface)
    rows, ax, norm = surface.rows, panel.ax, loss_colours(surface, L)
    known = sorted(rows["S"].unique())
    sparsities = axes.apart(known, 0.13 * np.ptp(axes.halvings(known)), axes.halvings)
    ax.plot_surface(
        np.log10(N),
        -np.log1p(-S),
        L,
        rcount=MESH,
        ccount=MESH,
        cmap=style.ORDERED,
        norm=norm,
        alpha=0.75,
        linewidth=0,
    )
    u, v = np.log10(rows[surface.size]), -np.log1p(-rows["S"])
    fitted = surface.loss(rows[surface.size].to_numpy(float), rows["S"].to_numpy(float))
    for x, y, low, high in zip(u, v, fitted, rows["L"], strict=True):
        ax.plot([x, x], [y, y], [low, high], color=style.INK, linewidth=0.5)
    ax.scatter(u, v, rows["L"], color=style.INK, s=6, depthshade=False)
    ticks = axes.round_ticks(10 ** u.min(), 10 ** u.max(), 4)
    ax.xaxis.set_major_locator(FixedLocator([float(np.log10(t)) for t in ticks]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: style.short(10**x)))
    ax.yaxis.set_major_locator(FixedLocator([-float(np.log1p(-s)) for s in sparsities]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{-np.expm1(-y):.4g}"))
    ax.set_xlabel(style.size_symbol(surface.size), labelpad=-4)
    ax.set_ylabel("$S$", labelpad=-4)
    panel.title(f"loss (nats/token), $C$ = {axes.power(surface.C)} FLOPs")
    ax.tick_params(pad=-2, labelsize=6)
    ax.view_init(elev=28, azim=-62)
    ax.set_box_aspect((1.25, 1.15, 0.9), zoom=1.08)
    panel.sheet.record(panel.name, "surface", x=N.ravel(), y=S.ravel(), z=L.ravel())
    panel.sheet.record(panel.name, "runs", x=rows[surface.size], y=rows["S"], z=rows["L"])


def contours(panel: Panel, surface: Surface) -> None:
    """Draws the surface's contours, the runs coloured by their loss, and the optimum of each S."""
    N, S, L = filled_mesh(surface)
    rows, ax, norm = surface.rows, panel.ax, loss_colours(surface, L)
    axes.sparsity(ax, rows["S"], "y")
    ax.set_xscale("log")
    filled = ax.contourf(N, S, L, levels=14, cmap=style.ORDERED, norm=norm)
    ax.contour(N, S, L, levels=filled.levels, colors="white", linewidths=0.3)
    ax.scatter(
        rows[surface.size],
        rows["S"],
        c=rows["L"],
        s=16,
        cmap=style.ORDERED,
        norm=norm,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )
    panel.key("runs", color=style.GREY, marker="o", ls="none")
    optima = [o for o in size_optima(surface, "surface") if np.isfinite(o["N_star"])]
    labels = {True: ("optimum", "white"), False: ("bound of the optimum", "none")}
    for inside, (label, face) in labels.items():
        chosen = [o for o in optima if o["inside"] is inside]
        if chosen:
            x, y = ([o[name] for o in chosen] for name in ("N_star", "S"))
            panel.points(
                label,
                x,
                y,
                marker="*",
                markersize=8,
                markeredgecolor=style.INK,
                markeredgewidth=0.7,
                markerfacecolor=face,
                zorder=4,
                label=label,
            )
    ax.grid(False)
    stretch = (N.max() / N.min()) ** 0.04
    ax.set_xlim(N.min() / stretch, N.max() * stretch)
    axes.size(ax.xaxis, style.size_label(surface.size))
    bar = panel.sheet.figure.colorbar(filled, ax=ax, pad=0.02, label=axes.LOSS)
    bar.outline.set_visible(False)


def along_sparsity(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the loss over S: runs coloured by their size, and the surface at five sizes."""
    sheet, panel = one_panel()
    surface = middle_surface(inputs, fit)
    draw_along_sparsity(panel, surface)
    panel.legend(style.size_label(surface.size).replace(" parameters", "\nparameters"))
    return sheet


def along_size(inputs: FittedInputs, fit: str) -> Sheet:
    """Draws the loss over size: runs and the surface at each measured S, with its minimum."""
    sheet, panel = one_panel()
    optima = draw_along_size(panel, middle_surface(inputs, fit), colours(inputs, "S"))
    explain_optima(panel, optima)
    panel.legend(axes.SPARSITY)
    return sheet


def draw_along_sparsity(panel: Panel, surface: Surface) -> None:
    """Draws the loss over S at one budget and five sizes, with each run at the nearest of them.

    No two sparsities have runs of the same size. So a run is moved along the surface to the size of
    its line, and stays as far from the surface as it is at its own size.
    """
    rows = surface.rows
    axes.sparsity(panel.ax, rows["S"])
    N, own_S = surface.columns["N"], surface.columns["S"]
    quantiles = np.exp(np.quantile(np.log(N), [0.1, 0.3, 0.5, 0.7, 0.9]))
    sizes = sorted({float(f"{q:.1e}") for q in quantiles})  # to two digits
    every = {size: _sparsities_measured_at(surface, size) for size in sizes}
    curves = {size: S for size, S in every.items() if len(S) > 1}
    if not curves:
        panel.message("no size was measured\nat several sparsities")
        return
    palette = style.palette(curves)
    apart = np.full((len(curves), len(N)), np.inf)  # factors between a run's size and a line's
    for i, (size, S) in enumerate(curves.items()):
        L, band = _with_band(surface, np.full(len(S), size), S)
        key = style.short(size)
        panel.line(f"surface, N={size:g}", S, L, **band, color=palette[size], label=key)
        reached = (own_S > S[0] - 1e-9) & (own_S < S[-1] + 1e-9)
        apart[i, reached] = np.abs(np.log(N[reached] / size))
    if unseen := int(np.isinf(apart.min(axis=0)).sum()):
        runs = counted(unseen, "run is", "runs are")
        panel.sheet.warn(f"{runs} not drawn over S: no line of a size reaches the sparsity")
    for i, (size, colour) in enumerate(palette.items()):
        near = np.isfinite(apart.min(axis=0)) & (apart.argmin(axis=0) == i)
        moved = surface.loss(np.full(near.sum(), size), own_S[near])
        moved = moved - surface.loss(N[near], own_S[near])
        group = rows[near].assign(L=rows["L"][near] + moved)
        panel.points(
            f"runs, N={size:g}",
            group["S"],
            group["L"],
            **bars(group, error_among(rows)),
            color=colour,
            zorder=3,
            **style.EDGE,
        )
    panel.ax.set_ylabel("loss $L$ (nats/token)")
    panel.ax.set_title(f"$C$ = {axes.power(surface.C)} FLOPs", loc="left")


def draw_along_size(panel: Panel, surface: Surface, palette: style.Palette) -> pd.DataFrame:
    """Draws the loss over size at one budget and returns the optima that it marks."""
    optima = size_optima(surface, "surface")
    for best in optima:
        S, colour = best["S"], palette[best["S"]]
        rows = at(surface.rows, "S", S)
        u = np.log(rows[surface.size].to_numpy(float))
        N = np.exp(np.linspace(u.min(), u.max(), POINTS))
        L, band = _with_band(surface, N, np.full(POINTS, S))
        panel.line(f"surface, S={S:g}", N, L, **band, color=colour, label=f"{S:g}")
        panel.points(
            f"runs, S={S:g}",
            rows[surface.size],
            rows["L"],
            **bars(rows, error_among(surface.rows)),
            color=colour,
            markersize=3,
        )
        inside = best["inside"]
        panel.points(
            f"optimum, S={S:g}" + (f" ({best['note']})" if best["note"] else ""),
            best["N_star"],
            best["L_star"],
            marker="*" if inside else BOUNDS.get(best["note"], ("s", ""))[0],
            markersize=8 if inside else 5,
            markeredgewidth=0.6,
            markerfacecolor=colour if inside else "white",
            markeredgecolor=style.INK if inside else colour,
            zorder=4,
        )
    axes.size(panel.ax.xaxis, style.size_label(surface.size))
    panel.ax.set_ylabel("loss $L$ (nats/token)")
    panel.ax.set_title(f"$C$ = {axes.power(surface.C)} FLOPs", loc="left")
    return pd.DataFrame(optima)


def explain_optima(panel: Panel, optima: pd.DataFrame) -> None:
    if optima["inside"].any():
        panel.key("optimum", marker="*", markersize=8, color=style.GREY, ls="none")
    explain_bounds(panel, optima)


def _with_band(surface: Surface, N: Array, S: Array) -> tuple[Array, dict[str, Array]]:
    """Returns the surface at ``N`` (n,) and ``S`` (n,), and the ends of its interval."""
    loss, draws = surface.loss(N, S), surface.loss_draws(N, S)
    ends = percentiles(draws, surface.level) if len(draws) else ()
    return loss, dict(zip(("low", "high"), ends, strict=False))


def _sparsities_measured_at(surface: Surface, size: float) -> Array:
    """Returns sparsities that span those at which runs of about ``size`` were measured."""
    v = np.linspace(surface.measured["v"].min(), surface.measured["v"].max(), POINTS)
    low, high = surface.sizes_near(v)
    return np.asarray(-np.expm1(-v[(low <= np.log(size)) & (np.log(size) <= high)]))


def fitted_surfaces(inputs: FittedInputs) -> Sheet:
    """Draws F8: a row for each budget with contours of the surface, and predicted losses."""
    budgets = list(surfaces(inputs, "isoflop_total"))
    if not budgets:
        return one_panel()[1].message(NOTHING)
    sheet = Sheet(style.DOUBLE, ROW * len(budgets), 2 * len(budgets), 2)
    table = inputs.derived("subsamples", size="total")
    palette = colours(inputs, "S")
    for i, surface in enumerate(budgets):
        left, right = sheet.panels[2 * i : 2 * i + 2]
        contours(left, surface)
        left.title(f"$C$ = {axes.power(surface.C)} FLOPs")
        _unseen(right, at(table, "C", surface.C), palette)
    sheet.panels[1].legend(axes.SPARSITY)
    return sheet


def slices(inputs: FittedInputs) -> Sheet:
    """Draws F9: a row for each budget with its F2a, F2b and F2c."""
    fits = ("isoflop_total", "isoflop_active")
    total, active = ({s.C: s for s in surfaces(inputs, fit)} for fit in fits)
    shared = sorted(set(total) & set(active))
    if not shared:
        return one_panel()[1].message(NOTHING)
    sheet = Sheet(style.DOUBLE, ROW * len(shared), 3 * len(shared), 3)
    palette = colours(inputs, "S")
    marked = []
    for i, C in enumerate(shared):
        panels = sheet.panels[3 * i : 3 * i + 3]
        draw_along_sparsity(panels[0], total[C])
        small = {"fontsize": 5, "handlelength": 0.8, "labelspacing": 0.2}
        panels[0].legend("$N$", loc="best", bbox_to_anchor=None, title_fontsize=6, **small)
        pairs = zip(panels[1:], (total[C], active[C]), strict=True)
        marked += [draw_along_size(panel, surface, palette) for panel, surface in pairs]
        for panel in panels:
            panel.title(f"$C$ = {axes.power(C)}")
        for panel in panels[1:]:
            panel.ax.set_ylabel("")
            low, high = panel.ax.get_xlim()
            ticks = axes.round_ticks(low, high, 3)  # a third of the page is narrow
            panel.ax.xaxis.set_major_locator(FixedLocator(ticks))
    last = sheet.panels[2]
    explain_optima(last, pd.concat(marked))
    last.legend(axes.SPARSITY)
    return sheet


def _unseen(panel: Panel, rows: pd.DataFrame, palette: style.Palette) -> None:
    """Draws each run's loss over its mean prediction by the refits without it."""
    rows = rows[rows["predicted"].notna()]
    if not len(rows):
        panel.message("too few runs to refit\nthe surface to 80 % of them")
        return
    observed_over_predicted(panel, {"": rows}, "S", palette, "{:g}".format, _statistics)
    panel.ax.set_xlabel("predicted, run held out (nats/token)")


def _statistics(rows: pd.DataFrame) -> list[str]:
    mse = float(np.average(rows["mse"], weights=rows["times"]))
    lines = [f"$n$ = {len(rows)}", f"MSE = {mse:.2g} nats$^2$"]
    if len(rows) > 2:
        lines.append(f"$r$ = {rows['predicted'].corr(rows['L']):.3g}")
    return lines
