"""F7: how far 6 N_a D is from the count of training FLOPs by operations (Eq 9, sparsity)."""

from typing import Any

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel


def draw(inputs: Inputs) -> Sheet:
    """Draws the ratio of both counts over total parameters, a line for each sparsity."""
    sheet, panel = one_panel()
    panel.ax.set_xscale("log")
    ratio = (inputs.table["C_sparsity"] / inputs.table["C_6N"]).round(9)
    runs = inputs.table.assign(ratio=ratio).drop_duplicates(["S", "N_total", "ratio"])
    sparsities = sorted(inputs.completed["S"].unique())
    for S, colour in zip(sparsities, style.ordered_colours(len(sparsities)), strict=True):
        rows = runs[runs["S"] == S].sort_values("N_total")
        look: dict[str, Any] = {"marker": "o", "markersize": 2.5, "linewidth": 0.9}
        look |= {"color": colour, "label": f"{S:g}"}
        panel.line(f"S={S:g}", rows["N_total"], rows["ratio"], **look)
    panel.ax.axhline(1, color=style.GREY, linewidth=0.8, linestyle=style.DASHES)
    style.size_axis(panel.ax.xaxis, style.size_label("N_total"))
    panel.ax.set_ylabel("FLOPs by Eq 9 / $6 N_a D$")
    panel.legend("sparsity $S$")
    return sheet
