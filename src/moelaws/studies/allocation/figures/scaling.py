"""F2 shows r* over compute at each sparsity, and its two coefficients over 1 - S."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import NullLocator

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.fitting.report import FitReport
from moelaws.studies.allocation.figures.common import percent, ratio_axis
from moelaws.studies.allocation.laws.ratio import alpha_r, beta_r, ratio

FIT = "ratio_adjusted"
SYMBOLS = {"alpha_r": r"prefactor $\alpha_r$ (FLOP$^{-\beta_r}$)", "beta_r": r"exponent $\beta_r$"}
PUBLISHED = {"alpha_r": alpha_r, "beta_r": beta_r}
MARGIN = 30.0  # factor beyond the estimates at which intervals are cut on a logarithmic axis


def over_compute(inputs: FittedInputs) -> Sheet:
    """Draws r* over C, a colour a sparsity, with the line of each."""
    table, report = inputs.derived("r_star"), inputs.fit(FIT)
    sheet, panel = one_panel(style.SINGLE + 0.9, style.HEIGHT + 0.2)
    palette = style.palette(table["S"].round(9))
    span = float(table["C"].min()), float(table["C"].max())
    C = np.geomspace(span[0] / 1.3, span[1] * 1.3, 60)
    low, high = float(table["r_least"].min()) / 1.3, float(table["r_most"].max()) * 1.3
    published_in_view = False
    panel.ax.set_xscale("log")
    for i, (S, colour) in enumerate(palette.items()):
        rows = table[np.isclose(table["S"], S)]
        shift = (span[1] / span[0]) ** (0.008 * (i - (len(palette) - 1) / 2))
        _points(panel, rows, S, colour, shift)
        published = ratio(C, S)
        published_in_view |= bool(((published > low) & (published < high)).any())
        panel.line(f"published, S={S:.4g}", C, published, color=style.GREY, lw=0.7, ls=style.DASHES)
        for part in report.parts:
            if np.isclose(part.where["S"], S):
                p = part.estimates()
                panel.line(f"fit, S={S:.4g}", C, p["alpha_r"] * C ** p["beta_r"], color=colour)
    _explain(panel, table, published_in_view)
    budgets = sorted(table["C"].unique())
    ticks = budgets if len(budgets) <= 4 else style.round_ticks(*span)
    panel.ax.set_xticks(ticks, [style.power(C) for C in ticks], minor=False)
    panel.ax.xaxis.set_minor_locator(NullLocator())
    panel.ax.set_xlabel("compute $C$ (FLOPs)")
    ratio_axis(panel, "y", low, high, "optimal ratio $r^*$")
    panel.legend("sparsity $S$")
    return sheet


def _points(panel: Panel, rows: pd.DataFrame, S: float, colour: object, shift: float) -> None:
    """Marks adjusted r*, hollow at an end of the grid, and raw ones where they differ."""
    end = (rows["r_adjusted"] == rows["r_least"]) | (rows["r_adjusted"] == rows["r_most"])
    for at_end, group in rows.groupby(end, sort=True):
        panel.points(
            f"adjusted r*, S={S:.4g}" + (" (end of the grid)" if at_end else ""),
            group["C"] * shift,
            group["r_adjusted"],
            group["adjusted_low"],
            group["adjusted_high"],
            color=colour,
            markerfacecolor="white" if at_end else colour,
        )
    other = rows[rows["adjusted"]]
    if len(other):
        panel.points(
            f"raw r*, S={S:.4g}", other["C"] * shift, other["r_raw"], color=colour, marker="x"
        )
    panel.ax.plot([], [], color=colour, marker="o", linewidth=1.2, label=percent(S))


def _explain(panel: Panel, table: pd.DataFrame, published_in_view: bool) -> None:
    """Adds the marks that carry no colour to the legend."""
    grey = {"color": style.GREY, "linestyle": "none"}
    if table["r_adjusted"].isin([*table["r_least"], *table["r_most"]]).any():
        panel.ax.plot([], [], marker="o", mfc="white", label="at an end of the grid", **grey)
    if table["adjusted"].any():
        panel.ax.plot([], [], marker="x", label="raw, where rule\nB.3 changed it", **grey)
    where = "each $S$" if published_in_view else "beyond\nthe axis here"
    panel.ax.plot([], [], color=style.GREY, lw=0.7, ls=style.DASHES, label=f"published ({where})")


def over_sparsity(inputs: FittedInputs, coefficient: str) -> Sheet:
    """Draws a coefficient of r* over 1 - S, with the lines of the second stage and the paper."""
    report, stages = inputs.fit(FIT), inputs.derived("stages")
    sheet, panel = one_panel()
    x, value, low, high = _estimates(report, coefficient)
    grid = np.geomspace(x.min() / 1.2, x.max() * 1.2, 60)
    published = PUBLISHED[coefficient](1 - grid)
    logarithmic = bool((value > 0).all())
    panel.ax.set_xscale("log")
    if logarithmic:
        floor, top = value.min() / MARGIN, value.max() * MARGIN
        low, high = np.clip(low, floor, None), np.clip(high, None, top)
        panel.ax.set_yscale("log")
    panel.points(
        "fit at each S (adjusted r*)", x, value, low, high, color=style.INK, label="own runs"
    )
    line = stages[(stages["selection"] == "adjusted") & (stages["coefficient"] == coefficient)]
    prefactor, exponent = line["estimate"].to_numpy(float)
    if np.isfinite([prefactor, exponent]).all():
        y = prefactor * grid**exponent
        panel.line(
            "second stage", grid, y, color=style.ORDERED(0.5), label=_power(prefactor, exponent)
        )
    panel.line(
        "published", grid, published, color=style.GREY, linestyle=style.DASHES, linewidth=0.8,
        label="published\n" + _power(*line["published"].to_numpy(float)),
    )  # fmt: skip
    for note in sorted(set(line["note"]) - {""}):
        sheet.warn(f"{coefficient}: {note}")
    _fraction_axis(panel, x)
    panel.ax.set_ylabel(SYMBOLS[coefficient])
    panel.legend()
    return sheet


def _estimates(report: FitReport, coefficient: str) -> tuple[np.ndarray, ...]:
    """Returns 1 - S, estimate and interval's ends of each sparsity, (n,); NaN without an end."""
    parts = [(1 - part.where["S"], part.params[coefficient]) for part in report.parts]
    rows = [(x, estimate.estimate, estimate.low, estimate.high) for x, estimate in parts]
    return tuple(np.array(rows, float).T)  # an end of None becomes NaN


def _power(prefactor: float, exponent: float) -> str:
    return f"{style.power(prefactor)}$\\,(1-S)^{{{exponent:.2f}}}$"


def _fraction_axis(panel: Panel, x: np.ndarray) -> None:
    axis = panel.ax.xaxis
    style.fixed_ticks(axis, sorted(x), "{:.3g}".format)
    axis.set_label_text("active fraction $1 - S$")
