"""F1b and F17 show the joint law (Eq 4); tables of loss curves, leverage and predictions."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import axes, style
from moelaws.figures.axes import percent
from moelaws.figures.losses import write_statistics
from moelaws.figures.sheet import Sheet, two_panels
from moelaws.studies.leverage.derived.curves import COMPUTE, DENSE, Curve, curve, curves
from moelaws.studies.leverage.derived.curves import leverage_points as leverage_of
from moelaws.studies.leverage.derived.points import JOINT, VALIDATION, by_joint_law
from moelaws.studies.leverage.figures.common import RATIO, published_leverage

POINTS = 81
VARIANTS = "curve_variants"  # the fit of the sub-experiments
# An architecture: its label, its curve or none, and its points of leverage or its single runs.
Shown = tuple[str, Curve | None, pd.DataFrame]
COLUMNS = ["C", "L", "low", "high", "EL", "EL_low", "EL_high", "kind", "place", "label"]


def leverage_of_sparsest(inputs: FittedInputs) -> pd.DataFrame:
    """Returns what ``architectures`` does, of the dense and of the sparsest architecture.

    Two points of the kind ``leverage`` are the mixture's middle budget, and the compute that the
    dense counterpart needs for the same loss.
    """
    dense = curve(inputs, DENSE)
    mixtures = list(curves(inputs, "curve_activation"))
    if not mixtures:
        return pd.DataFrame(columns=COLUMNS)
    moe = max(mixtures, key=lambda moe: float(moe.rows["E"].iloc[0]))
    budgets = np.sort(moe.rows[COMPUTE].unique())
    C = float(budgets[len(budgets) // 2])
    L = float(moe.loss(np.array([C]))[0])
    C_dense = float(dense.compute_for(np.array([L]))[0])
    leverage = pd.DataFrame({"C": [C, C_dense], "L": L if np.isfinite(C_dense) else np.nan})
    about: dict[str, Any] = {"kind": "leverage", "place": -1, "label": f"EL = {C_dense / C:.2g}"}
    name = f"A={1 - float(moe.rows['S'].iloc[0]):g}"
    every = _rows("dense", dense, [(name, moe, leverage.head(0))], C_dense)
    return pd.concat([every, leverage.assign(**about)])


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


def _rows(name: str, base: Curve, shown: list[Shown], to: float = 0.0) -> pd.DataFrame:
    """Returns the rows of the base and of the others; the base's curve goes on ``to`` a budget."""
    every: list[Shown] = [(name, base, pd.DataFrame({"C": []})), *shown]
    tables = []
    for place, (label, moe, points) in enumerate(every, -1):
        kinds = {"leverage" if moe else "single": points}
        if moe:
            C = moe.rows[COMPUTE].to_numpy(float)
            end = np.fmin(np.fmax(C.max(), to if place < 0 else 0.0), 30 * C.max())
            grid = np.geomspace(C.min(), end, POINTS)
            line = {"C": grid, "L": moe.loss(grid), **moe.loss_band(grid)}
            kinds |= {"curve": pd.DataFrame(line), "run": moe.rows.assign(C=C)}
        about: dict[str, Any] = {"place": place, "label": label}
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


def predicted(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the points of ``_residuals`` with the name of their role, and the errors in words."""
    rows = _residuals(inputs)
    squared = ((rows["EL"] - rows["predicted"]) ** 2).groupby(rows["role"]).mean()
    printed = {"fitted": ".217", "validation": ".528"}
    lines = [f"RMSE {r} = {squared[r] ** 0.5:.3g} (published {printed[r]})" for r in squared.index]
    lines += [] if "validation" in squared else ["no point has EL >= 6: nothing validates the law"]
    R2 = inputs.fit(JOINT).parts[0].metrics["r2"]
    lines += [] if R2 is None else [f"$R^2$ = {R2:.3g} (published .986)"]
    sizes = rows.groupby(["role", "measured"])["EL"].transform("size")
    ends = rows["role"].map({"fitted": ", EL < 6: ", "validation": ", EL >= 6: "})
    beyond = rows["measured"].map({1: "", 0: " extrapolated"})
    return rows.assign(
        name=rows["role"] + ends + sizes.astype(str) + beyond, words="\n".join(lines)
    )


def equality(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the ends of the line on which the points of ``predicted`` would lie."""
    rows = _residuals(inputs)[["EL", "predicted"]]
    ends = [rows.min().min() / 1.1, rows["EL"].max() * 1.1]
    return pd.DataFrame({"EL": ends, "predicted": ends})


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
