"""F7: how far 6 N_a D is from the count of training FLOPs by operations (Eq 9, sparsity)."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.figures.sparsity.common import colours


def draw(inputs: Inputs) -> Sheet:
    """The ratio of both counts over total parameters, a line a sparsity."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    panel.ax.set_xscale("log")
    runs = inputs.table
    ratio = runs["C_sparsity"] / runs["C_6N"]
    frame = runs.assign(ratio=ratio.round(9)).drop_duplicates(["S", "N_total", "ratio"])
    for S, colour in colours(inputs, "S").items():
        rows = frame[frame["S"] == S].sort_values("N_total")
        panel.line(
            f"S={S:g}",
            rows["N_total"],
            rows["ratio"],
            color=colour,
            marker="o",
            markersize=2.5,
            label=f"{S:g}",
            linewidth=0.9,
        )
    panel.ax.axhline(1, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    style.size_axis(panel.ax.xaxis, style.size_label("N_total"))
    panel.ax.set_ylabel("FLOPs by Eq 9 / $6 N_a D$")
    panel.legend("sparsity $S$")
    return sheet


FIGURES = {"F7": draw}
