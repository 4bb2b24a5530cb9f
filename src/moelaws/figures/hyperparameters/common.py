"""What the search's figures share: a colour a kind of model, fitted and published lines over C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike

from moelaws import laws
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.report import FitReport

LABELS = {"moe": "mixture of experts", "dense": "dense"}
COLOURS = {"moe": "#2a6fa8", "dense": "#c0504d"}
MARKERS = {"moe": "o", "dense": "s"}
ASIDE = {"moe": 0.96, "dense": 1.04}  # so that marks at one budget stand side by side
POINTS = 40  # of a line
COMPUTE = "training compute $C$ (FLOPs)"


def fitted_line(panel: Panel, fit: FitReport, drawn: pd.DataFrame, kind: str, C: Array) -> str:
    """A fitted power law over ``C`` (n,) with its interval; returns its power of C in words.

    ``drawn`` holds a coefficient and an exponent a row; none draw no interval.
    """
    law = fit.parts[0].estimates()
    band: dict[str, Array] = {}
    if len(drawn):
        # In logarithms: draws from few budgets reach beyond what a float can hold.
        log_k, exponents = np.log(drawn["coefficient"].to_numpy()), drawn["exponent"].to_numpy()
        tails = [(1 - fit.level) / 2, (1 + fit.level) / 2]
        low, high = np.quantile(log_k[:, None] + np.outer(exponents, np.log(C)), tails, axis=0)
        band = {"low": np.exp(low), "high": np.exp(high)}
    panel.line(
        f"fit, {kind}",
        C,
        law["coefficient"] * C ** law["exponent"],
        **band,
        color=COLOURS[kind],
        label=f"fitted, {LABELS[kind]}",
    )
    return f"{kind} $C^{{{law['exponent']:.2f}}}$"


def published_line(
    panel: Panel, ref: str, C: Array, label: str, dashes: tuple[float, ...] = (4, 2)
) -> None:
    """A law with its published coefficients over ``C`` (n,)."""
    panel.line(
        label,
        C,
        published(ref, C),
        color=style.GREY,
        linestyle=(0, dashes),
        linewidth=1.0,
        zorder=1.5,
        label=label,
    )


def published(ref: str, C: Array) -> Array:
    """A law's published values at ``C`` (n,)."""
    law = laws.fittable(ref)
    assert law.published is not None
    return law.predict(law.published, {"C": C})


def legend_below(sheet: Sheet, title: str = "", ncols: int = 4) -> None:
    """One legend for all panels, below them, each entry once."""
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
    """Budgets (n,) a little beyond those measured, for lines."""
    C = np.asarray(C, float)
    return np.geomspace(C.min() / 1.25, C.max() * 1.25, POINTS)


def log_axes(panel: Panel, C: ArrayLike) -> None:
    """Logarithmic axes that show all points and lines drawn so far, whatever a band's width.

    The interval of a law through three budgets may span decades; its ends say no more by showing.
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
    panel.ax.xaxis.set_major_locator(FixedLocator(ticks or list(budgets)))
    panel.ax.xaxis.set_major_formatter(FuncFormatter(style.power))
    panel.ax.xaxis.set_minor_locator(NullLocator())
    panel.ax.yaxis.set_major_locator(FixedLocator(style.round_ticks(*panel.ax.get_ylim())))
    panel.ax.yaxis.set_minor_locator(NullLocator())
    panel.ax.set_xlabel(COMPUTE)
