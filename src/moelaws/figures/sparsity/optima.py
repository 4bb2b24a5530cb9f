"""F3a-c, F4: compute-optimal size, active size, loss and sparsity across budgets (surface fits)."""

from __future__ import annotations

from functools import partial

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.figures.sparsity import published
from moelaws.figures.sparsity.common import colours, explain_bounds, optima_lines

BUDGET = "budget $C$ (FLOPs)"


def over_sparsity(inputs: Inputs, size: str, y: str) -> Sheet:
    """The optima ``y`` (N_star or L_star) over S, a line a budget."""
    table = inputs.derived("optima")
    rows = table[(table["size"] == size) & (table["method"] == "surface")]
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    optima_lines(panel, colours(inputs, "C"), rows, y)
    published.over_sparsity(panel, rows, size, y)
    explain_bounds(panel, rows)
    if y == "N_star":
        style.size_axis(panel.ax.yaxis, "optimal " + style.size_label(size, "^*"))
    else:
        panel.ax.set_ylabel("loss at the optimum $L^*$ (nats/token)")
    panel.legend(BUDGET)
    return sheet


def sparsity_over_size(inputs: Inputs, size: str) -> Sheet:
    """S* over N, a line a budget; dashed where it rests on no run nearby."""
    table = inputs.derived("sparsity_optima")
    table = table[table["size"] == size]
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    if not len(table):
        panel.message("no budget was measured\nat two or more sparsities")
        return sheet
    style.sparsity_axis(panel.ax, inputs.completed["S"].unique(), "y")
    panel.ax.set_xscale("log")
    for C, colour in colours(inputs, "C").items():
        rows = at(table, "C", C)
        if not len(rows):
            continue
        panel.line(
            style.power(C),
            rows["N"],
            rows["S_star"],
            rows["S_low"],
            rows["S_high"],
            color=colour,
            linestyle=(0, (2, 1.5)),
            linewidth=0.7,
        )
        solid = rows["S_star"].where(rows["inside"])
        panel.ax.plot(rows["N"], solid, color=colour, linewidth=1.6, label=style.power(C))
    if not table["inside"].all():
        panel.ax.plot(
            [],
            [],
            color=style.GREY,
            linestyle=(0, (2, 1.5)),
            linewidth=0.7,
            label="bound, or no\nruns nearby",
        )
    published.sparsity_over_size(panel, table)
    style.size_axis(panel.ax.xaxis, style.size_label(size))
    panel.ax.set_ylabel("optimal sparsity $S^*$")
    panel.legend(BUDGET)
    return sheet


FIGURES = {
    "F3a": partial(over_sparsity, size="total", y="N_star"),
    "F3b": partial(over_sparsity, size="active", y="N_star"),
    "F3c": partial(over_sparsity, size="total", y="L_star"),
    "F4": partial(sparsity_over_size, size="total"),
}
