"""F1 and F6 show the loss over the ratio r with its minimum; tables of the curves of F2."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.allocation.derived.r_star import Cell, cells_of
from moelaws.studies.allocation.laws.ratio import ratio

PANELS = 2  # at most this many inner sparsities are drawn
LABELS = 9  # at most this many budgets are named on the axis
FIT = "ratio_adjusted"
POINTS, BEYOND = 60, 1.3  # of a line, and the factor by which it reaches beyond the budgets


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


def published(inputs: Inputs) -> pd.DataFrame:
    """Returns the paper's r* over compute at each sparsity of the table r_star."""
    table = inputs.derived("r_star")
    C = np.geomspace(table["C"].min() / BEYOND, table["C"].max() * BEYOND, POINTS)
    lines = (pd.DataFrame({"C": C, "S": S, "r": ratio(C, S)}) for S in table["S"].unique())
    return pd.concat(lines)


def coefficients(inputs: FittedInputs, coefficient: str) -> pd.DataFrame:
    """Returns a coefficient of r* over ``x`` = 1 - S: of each fit, by the second stage, published.

    The ``kind`` says which, and the ``label`` shows the power law of a line.
    """
    parts = inputs.fit(FIT).parts
    own = pd.DataFrame([vars(part.params[coefficient]) for part in parts]).astype(float)
    own = own.rename(columns={"estimate": "y"}).assign(x=[1 - part.where["S"] for part in parts])
    x = np.geomspace(own["x"].min() / 1.2, own["x"].max() * 1.2, POINTS)
    line = inputs.derived("stages", selection="adjusted", coefficient=coefficient)
    lines = [own.assign(kind="fitted", label="own runs")]
    for kind, before in (("estimate", ""), ("published", "published\n")):
        prefactor, exponent = line[kind].to_numpy(float)
        label = f"{before}{axes.power(prefactor)}$\\,(1-S)^{{{exponent:.2f}}}$"
        drawn = {"x": x, "y": prefactor * x**exponent, "kind": kind, "label": label}
        lines += [pd.DataFrame(drawn)] if np.isfinite([prefactor, exponent]).all() else []
    return pd.concat(lines)
