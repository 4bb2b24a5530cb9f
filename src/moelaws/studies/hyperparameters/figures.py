"""Laws over compute, of batch and learning rate (F2a, F7) and of model scale and tokens (F2b, F9).

F8 maps the loss over learning rate and batch, with near-optimal runs and the laws' values.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Law
from moelaws.laws.leverage import allocation, hyperparameters
from moelaws.studies.hyperparameters.derived.near_optimal import end_of_search

LABELS = {"moe": "mixture of experts", "dense": "dense"}
# Quantity -> the laws in print by kind of model: those of Eq 5 are of mixtures alone
PUBLISHED: dict[str, dict[str, Law]] = {
    "batch_tokens": {"moe": hyperparameters.VARIANTS["batch"]},
    "lr": {"moe": hyperparameters.VARIANTS["lr"]},
    "M": {"moe": allocation.VARIANTS["M"], "dense": allocation.VARIANTS["dense_M"]},
    "D": {"moe": allocation.VARIANTS["D"], "dense": allocation.VARIANTS["dense_D"]},
}


def laws(inputs: FittedInputs, fits: dict[str, str], table: str) -> pd.DataFrame:
    """Returns the fitted laws over compute with intervals, by ``quantity`` and kind of model.

    ``fits`` has the fit of each quantity to the mixtures of the ``table``; that to dense models has
    a name ending in _dense.
    """
    C, lines = budgets(inputs, table), []
    kinds = set(inputs.derived(table)["kind"])
    for quantity, name in fits.items():
        for kind in (kind for kind in LABELS if kind in kinds):
            fit = name if kind == "moe" else f"{name}_dense"
            report = inputs.fit(fit)
            law = report.parts[0].estimates()
            line = {
                "value": law["coefficient"] * C ** law["exponent"],
                "low": np.nan,
                "high": np.nan,
            }
            if table == "best_sizes":
                drawn = inputs.draws(fit)
            else:
                drawn = inputs.derived("noise", kind=kind, setting=quantity).query("draw > 0")
            if len(drawn):  # in logarithms, as draws reach beyond what a float can hold
                log_k, powers = np.log(drawn["coefficient"].to_numpy()), drawn["exponent"]
                ends = log_k[:, None] + np.outer(powers, np.log(C))
                line["low"], line["high"] = np.exp(percentiles(ends, report.level))
            lines.append(pd.DataFrame({"quantity": quantity, "kind": kind, "C": C, **law, **line}))
    return pd.concat(lines)


def published_laws(inputs: FittedInputs, fits: dict[str, str], table: str) -> pd.DataFrame:
    """Returns the laws in print over compute, by ``quantity`` and kind of model."""
    C = budgets(inputs, table)
    return pd.concat(
        pd.DataFrame({"quantity": quantity, "kind": kind, "C": C, "value": published(law, C)})
        for quantity in fits
        for kind, law in PUBLISHED[quantity].items()
    )


def best_runs(inputs: FittedInputs, fits: dict[str, str], table: str) -> pd.DataFrame:
    """Returns the best run of each budget by ``quantity``, and whether it is ``at_end``."""
    rows = []
    for quantity in fits:
        for _, group in inputs.derived(table).groupby(["A", "C"]):
            best = group.iloc[int(np.argmin(group["L"]))]
            at_end = bool(end_of_search(group, quantity))
            row = {"quantity": quantity, "value": best[quantity], "at_end": at_end}
            rows.append({**best[["kind", "C"]], **row})
    return pd.DataFrame(rows)


def budgets(inputs: FittedInputs, table: str) -> Array:
    """Returns budgets (40,) for drawing lines, which reach a little beyond those measured."""
    C = inputs.derived(table)["C"]
    return np.geomspace(C.min() / 1.25, C.max() * 1.25, 40)


def published(law: Law, C: Array) -> Array:
    """Returns the only result of a law at ``C`` (n,) with its published coefficients."""
    (values,) = law.evaluate(law.published or {}, {"C": C}).values()
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
        marker="s",
        cmap=SHADES,
        norm=NORM,
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
