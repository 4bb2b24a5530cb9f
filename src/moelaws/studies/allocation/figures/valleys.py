"""F1 and F6 show the loss over the ratio r at each budget, and the path of its minimum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.allocation.derived.cells import Cell, cells_of
from moelaws.studies.allocation.figures.common import percent, ratio_axis

PANELS = 2  # at most, of inner sparsities
LABELS = 9  # at most, of budgets on the axis


def draw(inputs: Inputs, outer: bool) -> Sheet:
    """Draws a panel a sparsity: the least and the largest (``outer``), or two between them.

    Valleys of different budgets lie far apart in loss, so that each line is drawn above its own
    least loss and shifted up by a fixed step, from the smallest budget; a bar shows the scale. The
    CSV has the losses themselves, too.
    """
    cells = [cell for cell in cells_of(inputs.completed) if len(cell.r) > 1]
    known = sorted({cell.S for cell in cells})
    shown = sorted({*known[:1], *known[-1:]}) if outer else known[1:-1][-PANELS:]
    sheet = Sheet(
        style.DOUBLE if len(shown) > 1 else style.SINGLE, 3.4, ["rectilinear"] * max(len(shown), 1)
    )
    if not shown:
        sheet.panels[0].message(
            "no budget was trained\nat two ratios or more" if outer else "no further sparsity"
        )
        return sheet
    sizes = [float(cell.rows["N_active_nonemb"].median()) for cell in cells]
    norm = LogNorm(min(sizes) / 1.05, max(sizes) * 1.05)
    step = 0.5 * float(np.median([np.ptp(cell.L) for cell in cells])) or 1.0
    for panel, S in zip(sheet.panels, shown, strict=True):
        _valleys(panel, [cell for cell in cells if cell.S == S], norm, step)
        mark = f"({panel.name}) " if len(shown) > 1 else ""
        panel.ax.set_title(f"{mark}$S$ = {percent(S)}", loc="left")
        low, high = min(c.r[0] for c in cells), max(c.r[-1] for c in cells)
        ratio_axis(panel, "x", low, high, "expert-attention ratio $r = C_E/C_A$")
    sheet.panels[-1].ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=3)
    sheet.panels[0].ax.set_ylabel("budget $C$ (FLOPs); loss above its least")
    bar = sheet.figure.colorbar(
        ScalarMappable(norm, style.ORDERED), ax=[panel.ax for panel in sheet.panels], pad=0.02
    )
    style.size_axis(bar.ax.yaxis, "active parameters $N_a$ (no embeddings)")
    bar.outline.set_visible(False)
    return sheet


def _valleys(panel: Panel, cells: Sequence[Cell], norm: LogNorm, step: float) -> None:
    """Draws the budgets of one sparsity, from below in rising order."""
    path: list[tuple[float, float]] = []
    for i, cell in enumerate(cells):
        best = int(np.argmin(cell.L))
        height = cell.L - cell.L[best] + i * step
        path.append((cell.r[best], height[best]))
        name = f"C={cell.C:g}, S={cell.S:.4g}"
        panel.line(
            f"loss above its least, shifted by {i * step:.4g}, {name}",
            cell.r,
            height,
            color=style.ORDERED(norm(float(cell.rows["N_active_nonemb"].median()))),
            linewidth=0.9,
            marker="o",
            markersize=2.8,
        )
        panel.sheet.record(panel.name, f"loss, {name}", x=cell.r, y=cell.L)
    r_path, heights = np.array(path).T
    panel.line(
        "r*, least loss measured",
        r_path,
        heights,
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
    panel.ax.set_yticks(list(budgets), [style.power(C) for C in budgets.values()])
    _scale_bar(panel, step)


def _scale_bar(panel: Panel, step: float) -> None:
    """Draws a bar left of the lines that is as high as a round number of nats."""
    low, high = panel.ax.get_ylim()
    length = float(f"{step:.0e}")
    panel.ax.set_ylim(low, high + 1.6 * length)
    top = panel.ax.get_ylim()[1]
    place = panel.ax.get_yaxis_transform()
    panel.ax.plot([0.03, 0.03], [top - length, top], color=style.INK, lw=1.5, transform=place)
    panel.ax.text(
        0.05, top - length / 2, f"{length:g} nats/token", transform=place, va="center", fontsize=6
    )
