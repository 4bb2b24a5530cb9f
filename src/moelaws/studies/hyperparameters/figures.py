"""Laws over compute: of batch and learning rate (F2a, F7), of model scale and tokens (F2b, F9).

F8 maps the loss over learning rate and batch, with near-optimal runs and the laws' values.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from numpy.typing import ArrayLike

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
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
    look = style.PUBLISHED | {"linestyle": (0, dashes)}
    panel.line(label, C, published(law, C), **look, linewidth=1.0, zorder=1.5, label=label)


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


def log_axes(panel: Panel, C: pd.Series, label: str, text: axes.Text = style.short) -> None:
    """Sets logarithmic axes that show all points and lines so far; wide bands may leave them."""
    panel.ax.set_xlim(C.min() / 1.4, C.max() * 1.4)
    axes.compute(panel.ax.xaxis, C)
    y = panel.drawn["y"]
    axes.log(panel.ax.yaxis, label, text=text, ends=(y.min() / 1.35, y.max() * 1.35))


def settings(inputs: FittedInputs, all_runs: bool) -> Sheet:
    """Draws batch and learning rate over C: laws, and near-optimal runs or ``all_runs`` too."""
    sheet = Sheet(style.DOUBLE, 2.8, 2)
    search = inputs.derived("near_optimal")
    draws = inputs.derived("noise")
    draws = draws[draws["draw"] > 0]
    for panel, (column, fit) in zip(sheet.panels, SETTINGS.items(), strict=True):
        if all_runs:
            panel.points(
                "search",
                *_shifted(search, column),
                color="#d4d4d4",
                markersize=2.2,
                zorder=1,
                label="run of the search",
            )
        C = span(search["C"])
        powers = []
        for kind in LABELS:
            rows = search[(search["kind"] == kind) & (search["near"] == 1)]
            if not len(rows):
                continue
            name = fit if kind == "moe" else f"{fit}_dense"
            own = draws[(draws["kind"] == kind) & (draws["setting"] == column)]
            powers.append(fitted_line(panel, inputs.fit(name), own, kind, C))
            panel.points(
                f"near-optimal, {kind}",
                *_shifted(rows, column),
                color=COLOURS[kind],
                marker=MARKERS[kind],
                markerfacecolor="none",
                markeredgewidth=0.8,
                zorder=3,
                label=f"near-optimal, {LABELS[kind]}",
            )
        published_line(panel, hyperparameters.VARIANTS[fit], C, "published (mixtures, Eq 5)")
        as_text = style.short if column == "batch_tokens" else "{:.3g}".format
        log_axes(panel, search["C"], SETTING_AXES[column], as_text)
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
        panel.points(
            label,
            *_shifted(best, column),
            color=COLOURS[kind],
            marker=arrows.get(end, "*"),
            markersize=5 if end else 7,
            zorder=4,
        )
        panel.key(label, color=style.GREY, marker="^" if end else "*", ls="none")


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
        log_axes(panel, best["C"], SIZE_AXES[x])
        panel.ax.set_title(", ".join(powers), loc="right", fontsize=7)
    legend_below(sheet, ncols=3)
    return sheet


def _best(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the best run of each budget, hollow where its size is an end of those tried."""
    for end, group in rows.groupby("end"):
        panel.points(
            f"best run, {kind}" + (", a bound" if end else ""),
            group["C"] * SHIFTS[kind],
            group[f"{x}_argmin"],
            color=COLOURS[kind],
            marker=MARKERS[kind],
            markerfacecolor="white" if end else COLOURS[kind],
            zorder=3,
            label=f"best run, {LABELS[kind]}" + (" (a bound)" if end else ""),
        )


def _minima(panel: Panel, rows: pd.DataFrame, kind: str, x: str) -> None:
    """Marks the minimum of each budget's parabola, without an interval where it is a bound."""
    minima = rows[rows[f"{x}_star"].notna()]
    panel.points(
        f"minimum of a parabola, {kind}",
        minima["C"] * SHIFTS[kind] ** 2.2,
        minima[f"{x}_star"],
        *(minima[f"{x}_{end}"].where(minima["inside"], np.nan) for end in ("low", "high")),
        color=COLOURS[kind],
        marker="D",
        markersize=3,
        alpha=0.55,
        zorder=2.5,
        label=f"parabola, {LABELS[kind]}",
    )
    for row in minima[~minima["inside"]].itertuples():
        panel.sheet.warn(f"{kind}, C={row.C:.3g}: the parabola's minimum is a bound: {row.note}")


# Percent above the least loss. Runs of the first step are those that the paper calls near-optimal.
STEPS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
SHADES = ListedColormap(style.ordered_colours(len(STEPS)), "excess")
NORM = BoundaryNorm(STEPS, SHADES.N, extend="max")
FRAME = "#e8352e"
SQUARE = 13.0  # points: the side of a run's square
PANELS = 4  # at most this many panels are drawn


def over_activation(inputs: FittedInputs) -> Sheet:
    """Maps the largest budget searched, a panel for each activation ratio; dense is A = 1."""
    search = inputs.derived("near_optimal")
    C = float(search["C"].max())
    groups = [(_architecture(rows), rows) for _, rows in at(search, "C", C).groupby("A")]
    return _sheet(inputs, groups, f"$C$ = {axes.power(C)} FLOPs")


def over_compute(inputs: FittedInputs, kind: str) -> Sheet:
    """Maps budgets in a panel each, for mixtures at the paper's ratio or for dense models."""
    search = inputs.derived("near_optimal", kind=kind)
    if kind == "moe" and len(search):  # all other ratios were searched at the largest budget alone
        ratio = search.groupby("A")["C"].nunique().idxmax()
        search = search[search["A"] == ratio]
    budgets = np.sort(search["C"].astype(float).unique())
    places = np.linspace(0, len(budgets) - 1, min(PANELS, len(budgets))).round().astype(int)
    groups = [(f"$C$ = {axes.power(C)}", at(search, "C", C)) for C in budgets[np.unique(places)]]
    return _sheet(inputs, groups, _architecture(search) if len(search) else "")


def _architecture(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    return "dense" if row["A"] == 1 else f"{row['k']:.0f} of {row['E']:.0f}, $A$ = {row['A']:.3f}"


def _sheet(inputs: FittedInputs, groups: list[tuple[str, pd.DataFrame]], common: str) -> Sheet:
    """Draws a map of each group of runs, titled by its name, with one legend titled ``common``."""
    groups = groups[-PANELS:]
    n = max(len(groups), 1)
    sheet = Sheet(max(style.SINGLE, 1.4 + 1.45 * n), 2.8, n)
    if not groups:
        return sheet.panels[0].message("no run of this search\nis completed")
    for panel, (name, rows) in zip(sheet.panels, groups, strict=True):
        _cells(panel, rows)
        _predicted(panel, inputs, float(rows["C"].iloc[0]))
        _axes(panel, rows)
        panel.title(name)
    sheet.panels[0].ax.set_ylabel("batch $B$ (tokens)")
    beside = [panel.ax for panel in sheet.panels]
    bar = sheet.figure.colorbar(ScalarMappable(NORM, SHADES), ax=beside, pad=0.02)
    bar.set_label("loss above the least (%)")
    bar.outline.set_visible(False)
    limits = np.array([panel.ax.get_ylim() for panel in sheet.panels])
    for panel in sheet.panels:
        panel.ax.set_ylim(limits.min(), limits.max())
        panel.ax.tick_params(labelleft=panel is sheet.panels[0])
    legend_below(sheet, common, ncols=4 if n > 2 else 2)
    return sheet


def _cells(panel: Panel, rows: pd.DataFrame) -> None:
    """Draws a square for each run, coloured by its excess loss and framed where near-optimal."""
    percent, near = 100 * rows["excess"], rows["near"] == 1
    panel.sheet.record(panel.name, "runs", x=rows["lr"], y=rows["batch_tokens"], z=percent)
    panel.ax.scatter(
        rows["lr"],
        rows["batch_tokens"],
        SQUARE**2,
        percent,
        "s",
        SHADES,
        NORM,
        linewidths=1.4,
        edgecolors=np.where(near, FRAME, "white"),
    )
    best = rows.iloc[[int(np.argmin(rows["L"]))]]
    panel.points(
        "best run",
        best["lr"],
        best["batch_tokens"],
        color="white",
        marker="*",
        markersize=7,
        markeredgecolor=style.INK,
        markeredgewidth=0.5,
        zorder=4,
        label="best run",
    )
    panel.key("near-optimal ($\\leq$ 0.25 %)", color=FRAME, marker="s", mfc="none", ls="none")


def _predicted(panel: Panel, inputs: FittedInputs, C: float) -> None:
    """Marks the learning rate and batch of the fitted laws and of Eq 5 at this budget."""
    fitted, printed = {}, {}
    for name in ("lr", "batch"):
        law = inputs.fit(name).parts[0].estimates()
        fitted[name] = law["coefficient"] * C ** law["exponent"]
        printed[name] = published(hyperparameters.VARIANTS[name], np.array([C]))
    marks = (
        ("fitted law (mixtures)", fitted, "X", "#e07b00"),
        ("published (Eq 5)", printed, "P", style.GREY),
    )
    for label, law_at, marker, colour in marks:
        panel.points(
            label,
            law_at["lr"],
            law_at["batch"],
            color=colour,
            marker=marker,
            markersize=6,
            zorder=5,
            label=label,
            **style.EDGE,
        )


def _axes(panel: Panel, rows: pd.DataFrame) -> None:
    """Sets logarithmic axes with room for whole squares about the runs."""
    panel.ax.set(xscale="log", yscale="log")
    panel.ax.margins(0.2)
    rates, batches = map(axes.every_other, (rows["lr"], rows["batch_tokens"]))
    label = r"peak rate $\eta$ ($10^{-3}$)"
    axes.log(panel.ax.xaxis, label, rates, lambda lr: f"{1e3 * lr:.2g}")
    axes.log(panel.ax.yaxis, "", batches, style.short)
    panel.ax.grid(False)
