"""Laws over compute: of batch and learning rate (F2a, F7), of model scale and tokens (F2b, F9)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import FitReport
from moelaws.laws.base import Law
from moelaws.laws.leverage import allocation, hyperparameters
from moelaws.studies.hyperparameters.derived.near_optimal import end_of_search

LABELS = {"moe": "mixture of experts", "dense": "dense"}
COLOURS = {"moe": "#2a6fa8", "dense": "#c0504d"}
MARKERS = {"moe": "o", "dense": "s"}
SHIFTS = {"moe": 0.96, "dense": 1.04}  # of C: marks at one budget stand side by side
SETTINGS = {"batch_tokens": "batch", "lr": "lr"}  # column -> fit
SETTING_AXES = {"batch_tokens": "batch $B$ (tokens)", "lr": r"peak learning rate $\eta$"}
SIZE_AXES = {
    "M": r"best scale $M^\mathrm{opt}$ (FLOP/token)",
    "D": r"best data size $D^\mathrm{opt}$ (tokens)",
}
DASHES = {"moe": (4.0, 2.0), "dense": (1.0, 1.5)}


def fitted_line(panel: Panel, fit: FitReport, drawn: pd.DataFrame, kind: str, C: Array) -> str:
    """Draws a fitted power law over ``C`` (n,) with its interval; returns its power of C as text.

    ``drawn`` has a coefficient and an exponent in each row; without rows there is no interval.
    """
    law = fit.parts[0].estimates()
    band: dict[str, Array] = {}
    if len(drawn):
        # In logarithms, as draws from few budgets reach beyond what a float can hold.
        log_k, exponents = np.log(drawn["coefficient"].to_numpy()), drawn["exponent"].to_numpy()
        low, high = percentiles(log_k[:, None] + np.outer(exponents, np.log(C)), fit.level)
        band = {"low": np.exp(low), "high": np.exp(high)}
    y, label = law["coefficient"] * C ** law["exponent"], f"fitted, {LABELS[kind]}"
    panel.line(f"fit, {kind}", C, y, **band, color=COLOURS[kind], label=label)
    return f"{kind} $C^{{{law['exponent']:z.2f}}}$"


def published_line(
    panel: Panel, law: Law, C: Array, label: str, dashes: tuple[float, ...] = (4, 2)
) -> None:
    """Draws a law with its published coefficients over ``C`` (n,)."""
    look = style.PUBLISHED | {"linestyle": (0, dashes), "linewidth": 1.0, "zorder": 1.5}
    panel.line(label, C, published(law, C), **look, label=label)


def published(law: Law, C: Array) -> Array:
    """Returns the only result of a law at ``C`` (n,) with its published coefficients."""
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
        below: Any = {"loc": "outside lower center", "title": title or None, "ncols": ncols}
        sheet.figure.legend(list(entries.values()), list(entries), **below)


def span(C: ArrayLike) -> Array:
    """Returns budgets (n,) for drawing lines, which reach a little beyond those measured."""
    C = np.asarray(C, float)
    return np.geomspace(C.min() / 1.25, C.max() * 1.25, 40)


def log_axes(panel: Panel, C: ArrayLike, y_text: Callable[[float], str]) -> None:
    """Sets logarithmic axes that show all points and lines so far; wide bands may leave them."""
    budgets = np.unique(np.asarray(C, float))
    panel.ax.set(xscale="log", yscale="log")
    panel.ax.set_xlim(budgets[0] / 1.4, budgets[-1] * 1.4)
    drawn = panel.sheet.data
    y = drawn["y"][drawn["panel"] == panel.name]
    panel.ax.set_ylim(y.min() / 1.35, y.max() * 1.35)
    wide = np.log10(budgets[-1] / budgets[0]) > 2
    ticks = [b for b in budgets if not wide or np.isclose(np.log10(b) % 1, 0, atol=1e-6)]
    style.fixed_ticks(panel.ax.xaxis, ticks or list(budgets), style.power)
    style.fixed_ticks(panel.ax.yaxis, style.round_ticks(*panel.ax.get_ylim()), y_text)
    panel.ax.set_xlabel("training compute $C$ (FLOPs)")


def settings(inputs: FittedInputs, all_runs: bool) -> Sheet:
    """Draws batch and learning rate over C: laws, and near-optimal runs or ``all_runs`` too."""
    sheet = Sheet(style.DOUBLE, 2.8, 2)
    search = inputs.derived("near_optimal")
    draws = inputs.derived("noise")
    draws = draws[draws["draw"] > 0]
    for panel, (column, fit) in zip(sheet.panels, SETTINGS.items(), strict=True):
        look: dict[str, Any] = {"color": "#d4d4d4", "markersize": 2.2, "zorder": 1}
        if all_runs:
            panel.points("search", *_shifted(search, column), **look, label="run of the search")
        C = span(search["C"])
        powers = []
        for kind in LABELS:
            rows = search[(search["kind"] == kind) & (search["near"] == 1)]
            if not len(rows):
                continue
            name = fit if kind == "moe" else f"{fit}_dense"
            own = draws[(draws["kind"] == kind) & (draws["setting"] == column)]
            powers.append(fitted_line(panel, inputs.fit(name), own, kind, C))
            hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 0.8}
            look = {**hollow, "color": COLOURS[kind], "marker": MARKERS[kind], "zorder": 3}
            label = f"near-optimal, {LABELS[kind]}"
            panel.points(f"near-optimal, {kind}", *_shifted(rows, column), **look, label=label)
        published_line(panel, hyperparameters.VARIANTS[fit], C, "published (mixtures, Eq 5)")
        as_text = style.short if column == "batch_tokens" else "{:.3g}".format
        log_axes(panel, search["C"], as_text)
        panel.ax.set_ylabel(SETTING_AXES[column])
        if all_runs:
            _best_runs(panel, search, column)
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet)
    return sheet


def _shifted(rows: pd.DataFrame, column: str) -> tuple[pd.Series, pd.Series]:
    """Returns C, shifted a little for each kind of model, beside the ``column``."""
    return rows["C"] * rows["kind"].map(SHIFTS).astype(float), rows[column].astype(float)


def _best_runs(panel: Panel, search: pd.DataFrame, column: str) -> None:
    """Marks the best run of each budget, with an arrow where the search ends there."""
    arrows = {"low": "v", "high": "^"}
    for _, group in search.groupby(["A", "C"]):
        best = group.iloc[[int(np.argmin(group["L"]))]]
        kind, end = str(best["kind"].iloc[0]), end_of_search(group, column)
        label = "best, at an end of the search" if end else "best of its budget"
        look: dict[str, Any] = {"marker": arrows.get(end, "*"), "markersize": 5 if end else 7}
        panel.points(label, *_shifted(best, column), color=COLOURS[kind], **look, zorder=4)
        panel.ax.plot([], [], "^" if end else "*", color=style.GREY, label=label)


def sizes(inputs: FittedInputs, parabolas: bool) -> Sheet:
    """Draws M and D over C: laws, the best run of each budget, and the minima of ``parabolas``."""
    sheet = Sheet(style.DOUBLE, 3.0, 2)
    best = inputs.derived("best_sizes")
    for panel, x in zip(sheet.panels, SIZE_AXES, strict=True):
        C = span(best["C"])
        powers = []
        for kind in LABELS:
            rows = best[best["kind"] == kind]
            if not len(rows):
                continue
            fit = x if kind == "moe" else f"{x}_dense"
            powers.append(fitted_line(panel, inputs.fit(fit), inputs.draws(fit), kind, C))
            _best(panel, rows, kind, x)
            if parabolas:
                _minima(panel, rows, kind, x)
        for kind in LABELS:
            law = allocation.VARIANTS[x if kind == "moe" else f"dense_{x}"]
            label = f"published ({LABELS[kind]}, Table 5)"
            published_line(panel, law, C, label, DASHES[kind])
        log_axes(panel, best["C"], style.short)
        panel.ax.set_ylabel(SIZE_AXES[x])
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet, ncols=3)
    return sheet


def _best(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the best run of each budget, hollow where its size is an end of those tried."""
    for end, group in rows.groupby("end"):
        series = f"best run, {kind}" + (", a bound" if end else "")
        look: dict[str, Any] = {"color": COLOURS[kind], "marker": MARKERS[kind], "zorder": 3}
        look |= {"markerfacecolor": "white"} if end else {}
        look["label"] = f"best run, {LABELS[kind]}" + (" (a bound)" if end else "")
        panel.points(series, group["C"] * SHIFTS[kind], group[f"{x}_argmin"], **look)


def _minima(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the minimum of each budget's parabola, without an interval where it is a bound."""
    minima = rows[rows[f"{x}_star"].notna()]
    C = minima["C"] * SHIFTS[kind] ** 2.2
    ends = (minima[f"{x}_{end}"].where(minima["inside"], np.nan) for end in ("low", "high"))
    look: dict[str, Any] = {"marker": "D", "markersize": 3, "alpha": 0.55, "zorder": 2.5}
    look |= {"color": COLOURS[kind], "label": f"parabola, {LABELS[kind]}"}
    panel.points(f"minimum of a parabola, {kind}", C, minima[f"{x}_star"], *ends, **look)
    for row in minima[~minima["inside"]].itertuples():
        panel.sheet.warn(f"{kind}, C={row.C:.3g}: the parabola's minimum is a bound: {row.note}")
