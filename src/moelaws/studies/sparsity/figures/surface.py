"""F1a, F1b, F8: isoFLOP surfaces at the middle and every budget; F2a to F2c, F9: their slices."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
from moelaws.figures.losses import observed_over_predicted
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.fitting.quantiles import percentiles
from moelaws.studies.sparsity.derived.optima import size_optima
from moelaws.studies.sparsity.derived.surface import Surface, middle_surface, surfaces
from moelaws.studies.sparsity.figures.common import colours

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


def _slices(
    inputs: FittedInputs, rows_of: Callable[[Surface], Iterable[pd.DataFrame]]
) -> pd.DataFrame:
    """Returns rows of all surfaces, with their budget, size and whether it is the middle budget."""
    every = []
    for fit in inputs.fits:
        middle = middle_surface(inputs, fit).C
        for surface in surfaces(inputs, fit):
            about: dict[str, Any] = {"C": surface.C, "size": surface.size.removeprefix("N_")}
            every += [f.assign(**about, middle=surface.C == middle) for f in rows_of(surface)]
    return pd.concat(every)


def runs(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the runs behind each surface, with their size ``N``."""
    return _slices(inputs, lambda surface: [surface.rows.assign(N=surface.rows[surface.size])])


def optima(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the optimum of each surface at each S."""
    return _slices(inputs, lambda surface: [pd.DataFrame(size_optima(surface, "surface"))])


def over_size(inputs: FittedInputs) -> pd.DataFrame:
    """Returns each surface over size at each measured S, with its interval."""

    def lines(surface: Surface) -> Iterator[pd.DataFrame]:
        for S, rows in surface.rows.groupby("S"):
            u = np.log(rows[surface.size].to_numpy(float))
            N = np.exp(np.linspace(u.min(), u.max(), POINTS))
            yield _with_band(surface, N, np.full(POINTS, float(str(S))))

    return _slices(inputs, lines)


def over_sparsity(inputs: FittedInputs) -> pd.DataFrame:
    """Returns each surface over S at five sizes, with its interval."""
    return _slices(
        inputs,
        lambda surface: (
            _with_band(surface, np.full(len(S), N), S).assign(place=place)
            for place, (N, S) in enumerate(_sizes(surface).items())
        ),
    )


def moved_runs(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the runs at the nearest of the five sizes whose line reaches their S.

    No two sparsities have runs of the same size. So a run is moved along the surface to the size of
    its line, and stays as far from the surface as it is at its own size.
    """

    def moved(surface: Surface) -> Iterator[pd.DataFrame]:
        N, own_S = surface.columns["N"], surface.columns["S"]
        lines = _sizes(surface)
        if not lines:
            return
        ends = [(S[0] - 1e-9, S[-1] + 1e-9) for S in lines.values()]
        reached = np.array([(own_S > low) & (own_S < high) for low, high in ends])
        apart = np.abs(np.log(N / np.array([*lines])[:, None]))  # between the run's size and a line
        place = np.where(reached, apart, np.inf).argmin(axis=0)
        size = np.array([*lines])[place]
        by = np.where(
            reached.any(axis=0), surface.loss(size, own_S) - surface.loss(N, own_S), np.nan
        )
        note = np.where(np.isnan(by), "no line of a size reaches the sparsity", "")
        L = surface.rows["L"] + by
        yield surface.rows.assign(N=size, place=place, L=L, note=note)

    return _slices(inputs, moved)


def _sizes(surface: Surface) -> dict[float, Array]:
    """Returns five sizes, each with sparsities that span those of the runs near it."""
    N = surface.columns["N"]
    quantiles = np.exp(np.quantile(np.log(N), [0.1, 0.3, 0.5, 0.7, 0.9]))
    sizes = sorted({float(f"{q:.1e}") for q in quantiles})  # to two digits
    every = {size: _sparsities_measured_at(surface, size) for size in sizes}
    return {size: S for size, S in every.items() if len(S) > 1}


def _with_band(surface: Surface, N: Array, S: Array) -> pd.DataFrame:
    """Returns the surface at ``N`` (n,) and ``S`` (n,), with the ends of its interval."""
    draws = surface.loss_draws(N, S)
    low, high = percentiles(draws, surface.level) if len(draws) else (np.nan, np.nan)
    return pd.DataFrame({"N": N, "S": S, "L": surface.loss(N, S), "low": low, "high": high})


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
