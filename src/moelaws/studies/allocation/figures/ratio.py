"""F1 and F6 show the loss over the ratio r with its minimum, and F2 shows r* over compute."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.allocation.derived.r_star import Cell, cells_of
from moelaws.studies.allocation.laws.ratio import alpha_r, beta_r, ratio

PANELS = 2  # at most this many inner sparsities are drawn
LABELS = 9  # at most this many budgets are named on the axis
FIT = "ratio_adjusted"
SYMBOLS = {"alpha_r": r"prefactor $\alpha_r$ (FLOP$^{-\beta_r}$)", "beta_r": r"exponent $\beta_r$"}
PUBLISHED = {"alpha_r": alpha_r, "beta_r": beta_r}
MARGIN = 30.0  # factor beyond the estimates at which intervals are cut on a logarithmic axis


def percent(S: float) -> str:
    """Returns a sparsity as the paper writes it: 95.38%."""
    return f"{100 * S:.2f}%"


def valleys(inputs: Inputs, outer: bool) -> Sheet:
    """Draws a panel for each sparsity: the least and the largest (``outer``), or two between them.

    Valleys of different budgets lie far apart in loss. So each line is drawn relative to its own
    least loss and shifted up by a fixed step from one budget to the next; a bar shows the scale.
    The CSV holds the losses themselves, too.
    """
    cells = [cell for cell in cells_of(inputs.completed) if len(cell.r) > 1]
    known = sorted({cell.S for cell in cells})
    shown = sorted({*known[:1], *known[-1:]}) if outer else known[1:-1][-PANELS:]
    sheet = Sheet(style.DOUBLE if len(shown) > 1 else style.SINGLE, 3.4, max(len(shown), 1))
    if not shown:
        return sheet.panels[0].message(
            "no budget was trained\nat two ratios or more" if outer else "no further sparsity"
        )
    sizes = [float(cell.rows["N_active_nonemb"].median()) for cell in cells]
    norm = LogNorm(min(sizes) / 1.05, max(sizes) * 1.05)
    step = 0.5 * float(np.median([np.ptp(cell.L) for cell in cells])) or 1.0
    for panel, S in zip(sheet.panels, shown, strict=True):
        _valleys(panel, [cell for cell in cells if cell.S == S], norm, step)
        panel.title(f"$S$ = {percent(S)}")
        ends = min(c.r[0] for c in cells) / 1.12, max(c.r[-1] for c in cells) * 1.12
        axes.log(panel.ax.xaxis, "expert-attention ratio $r = C_E/C_A$", ends=ends)
    sheet.panels[-1].ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=3)
    sheet.panels[0].ax.set_ylabel("budget $C$ (FLOPs); loss above its least")
    beside = [panel.ax for panel in sheet.panels]
    bar = sheet.figure.colorbar(ScalarMappable(norm, style.ORDERED), ax=beside, pad=0.02)
    axes.size(bar.ax.yaxis, "active parameters $N_a$ (no embeddings)")
    bar.outline.set_visible(False)
    return sheet


def _valleys(panel: Panel, cells: Sequence[Cell], norm: LogNorm, step: float) -> None:
    """Draws the budgets of one sparsity, which rise from below."""
    path: list[tuple[float, float]] = []
    for i, cell in enumerate(cells):
        best = int(np.argmin(cell.L))
        height = cell.L - cell.L[best] + i * step
        path.append((cell.r[best], height[best]))
        name = f"C={cell.C:g}, S={cell.S:.4g}"
        series = f"loss above its least, shifted by {i * step:.4g}, {name}"
        colour = style.ORDERED(norm(float(cell.rows["N_active_nonemb"].median())))
        panel.line(series, cell.r, height, color=colour, linewidth=0.9, marker="o", markersize=2.8)
        panel.sheet.record(panel.name, f"loss, {name}", x=cell.r, y=cell.L)
    panel.line(
        "r*, least loss measured",
        *np.array(path).T,
        color=style.INK,
        linewidth=1.0,
        linestyle=style.DASHES,
        marker="*",
        markersize=5,
        zorder=4,
        label="$r^*$: least loss measured",
    )
    every = -(-len(cells) // LABELS)
    budgets = {i * step: cell.C for i, cell in enumerate(cells) if i % every == 0}
    panel.ax.set_yticks(list(budgets), [axes.power(C) for C in budgets.values()])
    # A bar left of the lines is as high as a round number of nats.
    low, high = panel.ax.get_ylim()
    length = float(f"{step:.0e}")
    panel.ax.set_ylim(low, high + 1.6 * length)
    top = panel.ax.get_ylim()[1]
    place = {"transform": panel.ax.get_yaxis_transform()}
    panel.ax.plot([0.03, 0.03], [top - length, top], color=style.INK, lw=1.5, **place)
    text = f"{length:g} nats/token"
    panel.ax.text(0.05, top - length / 2, text, **place, va="center", fontsize=6)


def over_compute(inputs: FittedInputs) -> Sheet:
    """Draws r* over C, a colour for each sparsity, with its fitted and its published line."""
    table, report = inputs.derived("r_star"), inputs.fit(FIT)
    sheet, panel = one_panel(style.SINGLE + 0.9, style.HEIGHT + 0.2)
    groups = list(style.groups(table.assign(S=table["S"].round(9)), "S"))
    span = float(table["C"].min()), float(table["C"].max())
    C = np.geomspace(span[0] / 1.3, span[1] * 1.3, 60)
    low, high = float(table["r_least"].min()) / 1.45, float(table["r_most"].max()) * 1.45
    published_in_view = False
    for i, (S, colour, rows) in enumerate(groups):
        shift = (span[1] / span[0]) ** (0.008 * (i - (len(groups) - 1) / 2))
        _points(panel, rows, S, colour, shift)
        published = ratio(C, S)
        published_in_view |= bool(((published > low) & (published < high)).any())
        panel.line(f"published, S={S:.4g}", C, published, **style.PUBLISHED, linewidth=0.7)
        for result in report.parts:
            if np.isclose(result.where["S"], S):
                p = result.estimates()
                panel.line(f"fit, S={S:.4g}", C, p["alpha_r"] * C ** p["beta_r"], color=colour)
    _explain(panel, table, published_in_view)
    axes.compute(panel.ax.xaxis, table["C"])
    axes.log(panel.ax.yaxis, "optimal ratio $r^*$", ends=(low, high))
    panel.legend(axes.SPARSITY)
    return sheet


def _points(panel: Panel, rows: pd.DataFrame, S: float, colour: object, shift: float) -> None:
    """Marks the adjusted r*, hollow at an end of the grid, and the raw ones where they differ."""
    end = (rows["r_adjusted"] == rows["r_least"]) | (rows["r_adjusted"] == rows["r_most"])
    for at_end, group in rows.groupby(end, sort=True):
        series = f"adjusted r*, S={S:.4g}" + (" (end of the grid)" if at_end else "")
        ends = (group[name] for name in ("r_adjusted", "adjusted_low", "adjusted_high"))
        face = "white" if at_end else colour
        panel.points(series, group["C"] * shift, *ends, color=colour, markerfacecolor=face)
    other = rows[rows["adjusted"]]
    if len(other):
        raw = other["C"] * shift, other["r_raw"]
        panel.points(f"raw r*, S={S:.4g}", *raw, color=colour, marker="x")
    panel.key(percent(S), color=colour, marker="o", linewidth=1.2)


def _explain(panel: Panel, table: pd.DataFrame, published_in_view: bool) -> None:
    """Adds legend entries for the marks and lines that are not told apart by colour."""
    grey = {"color": style.GREY, "linestyle": "none"}
    if table["r_adjusted"].isin([*table["r_least"], *table["r_most"]]).any():
        panel.key("at an end of the grid", marker="o", mfc="white", **grey)
    if table["adjusted"].any():
        panel.key("raw, where rule\nB.3 changed it", marker="x", **grey)
    where = "each $S$" if published_in_view else "beyond\nthe axis here"
    panel.key(f"published ({where})", **style.PUBLISHED, linewidth=0.7)


def over_sparsity(inputs: FittedInputs, coefficient: str) -> Sheet:
    """Draws a coefficient of r* over 1 - S, with the lines of the second stage and the paper."""
    line = inputs.derived("stages", selection="adjusted", coefficient=coefficient)
    sheet, panel = one_panel()
    fitted = [(1 - p.where["S"], p.params[coefficient]) for p in inputs.fit(FIT).parts]
    rows = [(x, estimate.estimate, estimate.low, estimate.high) for x, estimate in fitted]
    x, value, low, high = np.array(rows, float).T  # an end of None becomes NaN
    grid = np.geomspace(x.min() / 1.2, x.max() * 1.2, 60)
    published = PUBLISHED[coefficient](1 - grid)
    if (value > 0).all():
        floor, top = value.min() / MARGIN, value.max() * MARGIN
        low, high = np.clip(low, floor, None), np.clip(high, None, top)
        panel.ax.set_yscale("log")
    series = "fit at each S (adjusted r*)"
    panel.points(series, x, value, low, high, color=style.INK, label="own runs")
    prefactor, exponent = line["estimate"].to_numpy(float)
    if np.isfinite([prefactor, exponent]).all():
        y, label = prefactor * grid**exponent, _power(prefactor, exponent)
        panel.line("second stage", grid, y, color=style.ORDERED(0.5), label=label)
    label = "published\n" + _power(*line["published"].to_numpy(float))
    panel.line("published", grid, published, **style.PUBLISHED, linewidth=0.8, label=label)
    for note in sorted(set(line["note"]) - {""}):
        sheet.warn(f"{coefficient}: {note}")
    axes.log(panel.ax.xaxis, "active fraction $1 - S$", sorted(x), "{:.3g}".format)
    panel.ax.set_ylabel(SYMBOLS[coefficient])
    panel.legend()
    return sheet


def _power(prefactor: float, exponent: float) -> str:
    return f"{axes.power(prefactor)}$\\,(1-S)^{{{exponent:.2f}}}$"
