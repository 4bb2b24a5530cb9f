"""The search's figures share a colour for each kind of model and lines of laws over compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import FitReport
from moelaws.laws.base import Law

LABELS = {"moe": "mixture of experts", "dense": "dense"}
COLOURS = {"moe": "#2a6fa8", "dense": "#c0504d"}
MARKERS = {"moe": "o", "dense": "s"}
SHIFTS = {"moe": 0.96, "dense": 1.04}  # of C: marks at one budget stand side by side


def fitted_line(panel: Panel, fit: FitReport, drawn: pd.DataFrame, kind: str, C: Array) -> str:
    """Draws a fitted power law over ``C`` (n,) with its interval; returns its power of C as text.

    ``drawn`` holds a coefficient and an exponent a row; none draw no interval.
    """
    law = fit.parts[0].estimates()
    band: dict[str, Array] = {}
    if len(drawn):
        # In logarithms: draws from few budgets reach beyond what a float can hold.
        log_k, exponents = np.log(drawn["coefficient"].to_numpy()), drawn["exponent"].to_numpy()
        low, high = percentiles(log_k[:, None] + np.outer(exponents, np.log(C)), fit.level)
        band = {"low": np.exp(low), "high": np.exp(high)}
    panel.line(
        f"fit, {kind}",
        C,
        law["coefficient"] * C ** law["exponent"],
        **band,
        color=COLOURS[kind],
        label=f"fitted, {LABELS[kind]}",
    )
    return f"{kind} $C^{{{law['exponent']:z.2f}}}$"


def published_line(
    panel: Panel, law: Law, C: Array, label: str, dashes: tuple[float, ...] = (4, 2)
) -> None:
    """Draws a law with its published coefficients over ``C`` (n,)."""
    panel.line(
        label,
        C,
        published(law, C),
        color=style.GREY,
        linestyle=(0, dashes),
        linewidth=1.0,
        zorder=1.5,
        label=label,
    )


def published(law: Law, C: Array) -> Array:
    """Returns what a law of one result gives at ``C`` (n,) with its published coefficients."""
    assert law.published is not None
    (values,) = law.evaluate(law.published, {"C": C}).values()
    return values


def legend_below(sheet: Sheet, title: str = "", ncols: int = 4) -> None:
    """Puts one legend for all panels below them, with each entry once."""
    entries: dict[str, Any] = {}
    for panel in sheet.panels:
        handles, labels = panel.ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    if entries:
        sheet.figure.legend(
            list(entries.values()),
            list(entries),
            title=title or None,
            loc="outside lower center",
            ncols=ncols,
        )


def span(C: ArrayLike) -> Array:
    """Returns budgets (n,) for lines, which reach a little beyond those measured."""
    C = np.asarray(C, float)
    return np.geomspace(C.min() / 1.25, C.max() * 1.25, 40)


def log_axes(panel: Panel, C: ArrayLike, y_text: Callable[[float], str]) -> None:
    """Sets logarithmic axes that show all points and lines drawn so far.

    Bands may leave them: the interval of a law through three budgets may span decades.
    """
    budgets = np.unique(np.asarray(C, float))
    panel.ax.set(xscale="log", yscale="log")
    ends = budgets[0] / 1.4, budgets[-1] * 1.4
    panel.ax.set_xlim(*ends)
    drawn = panel.sheet.data
    y = drawn["y"][drawn["panel"] == panel.name]
    panel.ax.set_ylim(y.min() / 1.35, y.max() * 1.35)
    wide = np.log10(budgets[-1] / budgets[0]) > 2
    ticks = [b for b in budgets if not wide or np.isclose(np.log10(b) % 1, 0, atol=1e-6)]
    style.fixed_ticks(panel.ax.xaxis, ticks or list(budgets), style.power)
    style.fixed_ticks(panel.ax.yaxis, style.round_ticks(*panel.ax.get_ylim()), y_text)
    panel.ax.set_xlabel("training compute $C$ (FLOPs)")
