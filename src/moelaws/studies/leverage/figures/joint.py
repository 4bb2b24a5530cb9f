"""F1b, F5, F17: the map, the predictions and the residuals of the joint law (Eq 4)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.leverage.figures.common import (
    RATIO,
    log_axis,
    percent,
    published_leverage,
)

FIT = "joint"
VALIDATION = 6.0  # EL from which on points validate (sec 4.2.3, leverage)
PUBLISHED_AT = 1e22  # FLOP, the paper's Figure 1


def heatmap(inputs: FittedInputs) -> Sheet:
    """Draws F1b: EL over A and G by these runs at their largest budget, and as published."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, 2)
    report = inputs.fit(FIT)
    points = inputs.derived("points")
    points = points[points["measured"] == 1]
    C = float(points["C"].max())
    A = np.geomspace(points["A_routed"].min(), 1.0, 60)
    G = np.geomspace(points["G"].min(), max(points["G"].max(), 2 * points["G"].min()), 60)
    law = laws.fittable(report.law)
    fitted = law.predict(report.parts[0].estimates(), {"A": A[None], "G": G[:, None], "C": C})
    printed = published_leverage(A[None], G[:, None], PUBLISHED_AT)
    titles = (f"these runs, {style.power(C)} FLOPs", "published, $10^{22}$ FLOPs")
    for panel, EL, title in zip(sheet.panels, (fitted, printed), titles, strict=True):
        _map(panel, A, G, EL, title)
    sheet.panels[0].points(
        "architectures trained", points["A_routed"], points["G"], marker="o", markersize=3,
        color="white", markeredgecolor=style.INK, markeredgewidth=0.5, clip_on=False, zorder=5,
    )  # fmt: skip
    return sheet


def _map(panel: Panel, A: np.ndarray, G: np.ndarray, EL: np.ndarray, title: str) -> None:
    mesh = panel.ax.pcolormesh(A, G, EL, cmap=style.ORDERED, shading="gouraud", rasterized=True)
    a, g = np.meshgrid(A, G)
    panel.sheet.record(panel.name, title, x=a.ravel(), y=g.ravel(), z=EL.ravel())
    lines = panel.ax.contour(A, G, EL, levels=7, colors="white", linewidths=0.5)
    panel.ax.clabel(lines, fontsize=6, fmt="%.3g")
    panel.sheet.figure.colorbar(mesh, ax=panel.ax, label="efficiency leverage EL", pad=0.02)
    panel.title(f"{title}")
    panel.ax.grid(False)
    ticks = [value for value in 2.0 ** -np.arange(0, 12, 2) if value >= A[0] * 0.999]
    log_axis(panel.ax.xaxis, RATIO, ticks, percent)
    panel.ax.set_yscale("log")
    style.fixed_ticks(panel.ax.yaxis, [x for x in (2, 4, 8, 16) if x <= G[-1] * 1.01])
    panel.ax.set_ylabel("granularity $G$")


def predicted(inputs: FittedInputs) -> Sheet:
    """Draws F5: EL by Algorithm 1 over EL by the fitted law, which those of EL >= 6 validate."""
    sheet, panel = one_panel()
    rows = _residuals(inputs)
    ends = np.array([rows[["EL", "predicted"]].min().min() / 1.1, rows["EL"].max() * 1.1])
    panel.ax.plot(ends, ends, color=style.GREY, linewidth=0.8, linestyle=style.DASHES, zorder=1)
    colours = style.ordered_colours(3)
    for name, label, colour in (
        ("fitted", "fitted, EL < 6", colours[0]),
        ("validation", "validation, EL >= 6", colours[1]),
    ):
        own = rows[rows["role"] == name]
        if len(own):
            panel.points(
                label, own["predicted"], own["EL"], label=f"{label}: {len(own)}",
                color=colour, markeredgecolor=style.INK, markeredgewidth=0.4,
            )  # fmt: skip
    fitted = rows[rows["role"] == "fitted"]
    rmse = float(np.sqrt(np.mean((fitted["EL"] - fitted["predicted"]) ** 2)))
    R2 = inputs.fit(FIT).parts[0].metrics["r2"]
    lines = [f"RMSE = {rmse:.3g} (published .217)"]
    lines += [] if R2 is None else [f"$R^2$ = {R2:.3g} (published .986)"]
    panel.ax.set_title("\n".join(lines), loc="left", fontsize=6.5)
    panel.ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    log_axis(panel.ax.xaxis, "EL by the joint law (Eq 4)", text=lambda x: f"{x:g}")
    log_axis(panel.ax.yaxis, "EL by Algorithm 1", text=lambda x: f"{x:g}")
    panel.legend()
    if not (rows["role"] != "fitted").any():
        sheet.warn("no point has EL >= 6: nothing validates the joint law")
    return sheet


def residuals(inputs: FittedInputs) -> Sheet:
    """Draws F17: the residuals of EL over the prediction, and their histogram."""
    sheet = Sheet(style.DOUBLE, style.HEIGHT, 2)
    scatter, histogram = sheet.panels
    rows = _residuals(inputs)
    rows = rows[rows["role"] == "fitted"]
    residual = (rows["EL"] - rows["predicted"]).to_numpy(float)
    colour = style.ordered_colours(3)[1]
    scatter.points("residuals", rows["predicted"], residual, color=colour, markersize=3)
    scatter.ax.axhline(0, color=style.GREY, linewidth=0.8)
    scatter.ax.set_xlabel("EL by the joint law (Eq 4)")
    scatter.ax.set_ylabel("residual of EL")
    counts, edges, _ = histogram.ax.hist(residual, bins="auto", color=colour, edgecolor="white")
    sheet.record(histogram.name, "histogram", x=(edges[1:] + edges[:-1]) / 2, y=counts)
    histogram.ax.text(
        0.97, 0.97,
        f"$n$ = {len(residual)}\nmean {residual.mean():.3g} (published -.027)\n"
        f"sd {residual.std():.3g} (published .280)",
        transform=histogram.ax.transAxes, va="top", ha="right", fontsize=6.5,
    )  # fmt: skip
    histogram.ax.set_ylim(top=1.35 * float(counts.max()))
    histogram.ax.set_xlabel("residual of EL")
    histogram.ax.set_ylabel("points")
    return sheet


def _residuals(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the points at trained budgets with ``predicted``, EL by the law, and ``role``.

    The role is fitted or validation; points that have neither are left out.
    """
    report, points = inputs.fit(FIT), inputs.derived("points")
    points = points[(points["EL"] > 0) & (points["measured"] == 1)]
    law = laws.fittable(report.law)
    columns = {"A": points["A_routed"], "G": points["G"], "C": points["C"]}
    predicted = law.predict(report.parts[0].estimates(), columns)
    fitted = points.index.isin(inputs.rows(FIT).index)
    rows = points.assign(predicted=predicted, role=np.where(fitted, "fitted", "validation"))
    return rows[fitted | (rows["EL"] >= VALIDATION)]
