"""F7: how far 6 N_a D is from the count of training FLOPs by operations (Eq 9, sparsity)."""

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.sparsity.figures.common import colours


def draw(inputs: Inputs) -> Sheet:
    """Draws the ratio of both counts over total parameters, a line for each sparsity."""
    sheet, panel = one_panel()
    ratio = (inputs.table["C_sparsity"] / inputs.table["C_6N"]).round(9)
    runs = inputs.table.assign(ratio=ratio).drop_duplicates(["S", "N_total", "ratio"])
    for S, colour, rows in style.groups(runs.sort_values("N_total"), "S", colours(inputs, "S")):
        panel.line(
            f"S={S:g}",
            rows["N_total"],
            rows["ratio"],
            color=colour,
            label=f"{S:g}",
            marker="o",
            markersize=2.5,
            linewidth=0.9,
        )
    panel.ax.axhline(1, color=style.GREY, linewidth=0.8, linestyle=style.DASHES)
    axes.size(panel.ax.xaxis, style.size_label("N_total"))
    panel.ax.set_ylabel("FLOPs by Eq 9 / $6 N_a D$")
    panel.legend(axes.SPARSITY)
    return sheet
