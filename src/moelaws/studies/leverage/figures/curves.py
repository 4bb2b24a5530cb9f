"""F1, F5, F17 show loss curves and the joint law (Eq 4); tables of the curves of F10b to F14d."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import axes, style
from moelaws.figures.axes import VALIDATION_LOSS, percent
from moelaws.figures.losses import draw_equality, write_statistics
from moelaws.figures.sheet import Panel, Sheet, one_panel, two_panels
from moelaws.studies.leverage.derived.curves import COMPUTE, DENSE, Curve, curve, curves
from moelaws.studies.leverage.derived.curves import leverage_points as leverage_of
from moelaws.studies.leverage.derived.points import JOINT, VALIDATION, by_joint_law
from moelaws.studies.leverage.figures.common import RATIO, published_leverage

POINTS = 81
VARIANTS = "curve_variants"  # the fit of the sub-experiments
# An architecture: its label, its curve or none, and its points of leverage or its single runs.
Shown = tuple[str, Curve | None, pd.DataFrame]
COLUMNS = ["C", "L", "low", "high", "EL", "EL_low", "EL_high", "kind", "place", "label"]


def leverage_arrow(inputs: FittedInputs) -> Sheet:
    """Draws F1a: the leverage of the sparsest architecture as an arrow between two loss curves."""
    sheet, panel = one_panel()
    dense = curve(inputs, DENSE)
    mixtures = list(curves(inputs, "curve_activation"))
    if not mixtures:
        return panel.message("no mixture of experts has\nruns enough for a curve")
    moe = max(mixtures, key=lambda moe: float(moe.rows["E"].iloc[0]))
    A = 1 - float(moe.rows["S"].iloc[0])
    budgets = np.sort(moe.rows[COMPUTE].unique())
    C = float(budgets[len(budgets) // 2])
    L = float(moe.loss(np.array([C]))[0])
    C_dense = float(dense.compute_for(np.array([L]))[0])
    _curve(panel, "dense", dense, style.INK, label="dense counterpart", to=C_dense)
    _curve(panel, f"A={A:g}", moe, style.ordered_colours(3)[1], label=f"$A$ = {percent(A)}")
    panel.ax.set_ylabel(VALIDATION_LOSS)
    if np.isfinite(C_dense):
        sheet.record(panel.name, "leverage", x=[C, C_dense], y=[L, L])
        arrow = {"arrowstyle": "<->", "color": "#b02a00", "linewidth": 1.0}
        panel.ax.annotate("", (C, L), (C_dense, L), arrowprops=arrow)
        panel.ax.annotate(
            f"EL = {C_dense / C:.2g}",
            (max(C, C_dense), L),
            xytext=(5, 4),
            textcoords="offset points",
            color="#b02a00",
        )
    else:
        sheet.warn(f"the dense curve never comes down to the loss of A = {percent(A)} at C = {C:g}")
    _limits(panel, [dense.rows, moe.rows])
    panel.ax.set_xscale("log")
    panel.ax.set_xlim(right=2 * panel.ax.get_xlim()[1])  # room for the arrow's label
    axes.compute(panel.ax.xaxis)
    panel.ax.legend(loc="upper right")
    return sheet


def architectures(inputs: FittedInputs, sweep: str, fit: str, baseline: str) -> pd.DataFrame:
    """Returns the curves of a sweep's architectures, their runs, and their leverage.

    The ``kind`` of a row says which of them it is, ``place`` and ``label`` say of which
    architecture; the ``baseline`` comes before the others, at place -1. An architecture of too few
    budgets for a curve has ``single`` runs.
    """
    if fit == VARIANTS:
        runs = inputs.derived("singles", sweep=sweep)
        if not len(runs):
            return pd.DataFrame(columns=COLUMNS)
        base = curve(inputs, str(runs["baseline"].iloc[0]))
        return _rows(baseline, base, list(_variants(inputs, runs, base)))
    points = inputs.derived("points", measured=1, sweep=sweep)
    mixtures = sorted(((*_name(moe, sweep), moe) for moe in curves(inputs, fit)), key=itemgetter(0))
    shown: list[Shown] = [
        (label, moe, points[points["E"] == int(moe.rows["E"].iloc[0])])
        for _, label, moe in mixtures
    ]
    return _rows(baseline, curve(inputs, DENSE), shown)


def _variants(inputs: FittedInputs, runs: pd.DataFrame, base: Curve) -> Iterator[Shown]:
    """Yields the architectures of a sub-experiment, but for the baseline's own runs."""
    fitted = {int(moe.rows["variant"].iloc[0]): moe for moe in curves(inputs, VARIANTS)}
    others = runs[~runs["run_id"].isin(base.rows["run_id"])]
    for variant in others.groupby("variant")["x"].median().sort_values().index:
        rows, moe = others[others["variant"] == variant], fitted.get(int(variant))
        label = f"{rows['x'].median():.2g}"
        if moe:
            rows = leverage_of(base, moe, np.unique(rows["C"].to_numpy(float)))
        yield label, moe, rows


def _rows(name: str, base: Curve, shown: list[Shown]) -> pd.DataFrame:
    every: list[Shown] = [(name, base, pd.DataFrame({"C": []})), *shown]
    tables = []
    for place, (label, moe, points) in enumerate(every, -1):
        kinds = {"leverage" if moe else "single": points}
        if moe:
            C = moe.rows[COMPUTE].to_numpy(float)
            grid = np.geomspace(C.min(), C.max(), POINTS)
            line = {"C": grid, "L": moe.loss(grid), **moe.loss_band(grid)}
            kinds |= {"curve": pd.DataFrame(line), "run": moe.rows.assign(C=C)}
        about = {"place": place, "label": label}
        tables += [
            rows.reindex(columns=COLUMNS).assign(kind=kind, **about) for kind, rows in kinds.items()
        ]
    return pd.concat(tables)


def _name(moe: Curve, sweep: str) -> tuple[float, str]:
    """Returns the value that an architecture has of what the sweep varies, and its text."""
    if sweep == "activation":
        A = 1 - float(moe.rows["S"].iloc[0])
        return A, percent(A)
    G = float(moe.rows["G"].median())
    return G, f"{round(G, 1):g}"


def _curve(
    panel: Panel, series: str, curve: Curve, colour: Any, to: float = 0.0, **options: Any
) -> None:
    """Draws a fitted curve with its interval and its runs, as far as ``to`` (FLOP) where beyond."""
    C = curve.rows[COMPUTE].to_numpy(float)
    end = max(C.max(), to if np.isfinite(to) else 0.0)
    grid = np.geomspace(C.min(), min(end, 30 * C.max()), POINTS)
    panel.line(series, grid, curve.loss(grid), **curve.loss_band(grid), color=colour, **options)
    panel.points(f"{series}, runs", C, curve.rows["L"], color=colour, markersize=3)


def _limits(panel: Panel, runs: list[pd.DataFrame]) -> None:
    """Limits the y axis to the losses of the runs; intervals may run off it."""
    L = pd.concat(runs)["L"].to_numpy(float)
    pad = 0.07 * (float(np.ptp(L)) or 1.0)
    low, high = panel.ax.get_ylim()
    panel.ax.set_ylim(max(low, L.min() - 2 * pad), min(high, L.max() + pad))


PUBLISHED_AT = 1e22  # FLOP, as in the paper's Figure 1


def heatmap(inputs: FittedInputs) -> Sheet:
    """Draws F1b: EL over A and G by these runs at their largest budget, and as published."""
    sheet = two_panels()
    points = inputs.derived("points", measured=1)
    C = float(points["C"].max())
    A = np.geomspace(points["A_routed"].min(), 1.0, 60)
    G = np.geomspace(points["G"].min(), max(points["G"].max(), 2 * points["G"].min()), 60)
    fitted = inputs.predict(JOINT, A=A[None], G=G[:, None], C=C)
    printed = published_leverage(A[None], G[:, None], PUBLISHED_AT)
    titles = (f"these runs, {axes.power(C)} FLOPs", "published, $10^{22}$ FLOPs")
    a, g = np.meshgrid(A, G)
    for panel, EL, title in zip(sheet.panels, (fitted, printed), titles, strict=True):
        mesh = panel.ax.pcolormesh(A, G, EL, cmap=style.ORDERED, shading="gouraud", rasterized=True)
        sheet.record(panel.name, title, x=a.ravel(), y=g.ravel(), z=EL.ravel())
        lines = panel.ax.contour(A, G, EL, levels=7, colors="white", linewidths=0.5)
        panel.ax.clabel(lines, fontsize=6, fmt="%.3g")
        sheet.figure.colorbar(mesh, ax=panel.ax, label="efficiency leverage EL", pad=0.02)
        panel.title(title)
        panel.ax.grid(False)
        ticks = [value for value in 2.0 ** -np.arange(0, 12, 2) if value >= A[0] * 0.999]
        axes.log(panel.ax.xaxis, RATIO, ticks, percent)
        whole = [x for x in (2, 4, 8, 16) if x <= G[-1] * 1.01]
        axes.log(panel.ax.yaxis, "granularity $G$", whole)
    sheet.panels[0].points(
        "architectures trained",
        points["A_routed"],
        points["G"],
        color="white",
        markersize=3,
        markeredgecolor=style.INK,
        markeredgewidth=0.5,
        clip_on=False,
        zorder=5,
    )
    return sheet


def predicted(inputs: FittedInputs) -> Sheet:
    """Draws F5: EL by Algorithm 1 over EL by Eq 4, hollow where it is extrapolated."""
    sheet, panel = one_panel(style.SINGLE + 1.5)
    rows = _residuals(inputs)
    draw_equality(panel, rows[["EL", "predicted"]].min().min() / 1.1, rows["EL"].max() * 1.1)
    colours = style.ordered_colours(3)
    roles = {"fitted": "fitted, EL < 6", "validation": "validation, EL >= 6"}
    for (role, label), colour in zip(roles.items(), colours, strict=False):
        for measured in (1, 0):
            own = rows[(rows["role"] == role) & (rows["measured"] == measured)]
            name = f"{label}: {len(own)}" + ("" if measured else " extrapolated")
            if len(own):
                panel.points(
                    name,
                    own["predicted"],
                    own["EL"],
                    color=colour,
                    label=name,
                    markersize=4,
                    markerfacecolor=colour if measured else "white",
                )
    squared = ((rows["EL"] - rows["predicted"]) ** 2).groupby(rows["role"]).mean()
    printed = {"fitted": ".217", "validation": ".528"}
    lines = [f"RMSE {r} = {squared[r] ** 0.5:.3g} (published {printed[r]})" for r in squared.index]
    R2 = inputs.fit(JOINT).parts[0].metrics["r2"]
    lines += [] if R2 is None else [f"$R^2$ = {R2:.3g} (published .986)"]
    panel.ax.set_title("\n".join(lines), loc="left", fontsize=6.5)
    axes.log(panel.ax.xaxis, "EL by the joint law (Eq 4)")
    axes.log(panel.ax.yaxis, "EL by Algorithm 1")
    panel.legend()
    if not (rows["role"] != "fitted").any():
        sheet.warn("no point has EL >= 6: nothing validates the joint law")
    return sheet


def residuals(inputs: FittedInputs) -> Sheet:
    """Draws F17: the residuals of EL over the prediction, and their histogram."""
    sheet = two_panels()
    scatter, histogram = sheet.panels
    rows = _residuals(inputs)
    rows = rows[rows["role"] == "fitted"]
    residual = (rows["EL"] - rows["predicted"]).to_numpy(float)
    colour = style.ordered_colours(3)[1]
    scatter.points("residuals", rows["predicted"], residual, color=colour, markersize=3)
    scatter.ax.axhline(0, color=style.GREY, linewidth=0.8)
    scatter.ax.set(xlabel="EL by the joint law (Eq 4)", ylabel="residual of EL")
    counts, edges, _ = histogram.ax.hist(residual, bins="auto", color=colour, edgecolor="white")
    sheet.record(histogram.name, "histogram", x=(edges[1:] + edges[:-1]) / 2, y=counts)
    said = [
        f"$n$ = {len(residual)}",
        f"mean {residual.mean():.3g} (published -.027)",
        f"sd {residual.std():.3g} (published .280)",
    ]
    write_statistics(histogram, said)
    histogram.ax.set_ylim(top=1.35 * float(counts.max()))
    histogram.ax.set(xlabel="residual of EL", ylabel="points")
    return sheet


def _residuals(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the points with EL ``predicted`` by the law, and the ``role``: fitted, validation."""
    points = inputs.derived("points")
    points = points[points["EL"] > 0]
    role = np.where(points["EL"] < VALIDATION, "fitted", "validation")
    return points.assign(predicted=by_joint_law(inputs, points)[0], role=role)
