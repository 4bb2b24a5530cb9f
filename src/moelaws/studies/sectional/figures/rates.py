"""The loss at each learning rate that was tried, by arm."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.sectional.arms import ARMS
from moelaws.studies.sectional.figures.arms import LOOKS


def draw(inputs: Inputs) -> Sheet:
    """Draws a line for each arm; the filled mark is the rate that its other runs have."""
    sheet, panel = one_panel(width=style.DOUBLE * 0.75)
    table = inputs.derived("rates")
    if not len(table):
        panel.message("this grid tries no other rates")
        return sheet
    for arm, rows in table.groupby("arm", sort=False):
        colour, label = LOOKS[str(arm)], ARMS[str(arm)]
        panel.points(str(arm), rows["lr"], rows["L"], color=colour, markerfacecolor="white")
        panel.ax.plot(rows["lr"], rows["L"], color=colour, linewidth=0.8, label=label, zorder=1)
        chosen = rows[rows["chosen"]]
        panel.ax.plot(chosen["lr"], chosen["L"], "o", color=colour)
    panel.ax.set_xscale("log")
    style.fixed_ticks(panel.ax.xaxis, sorted(set(table["lr"])), lambda lr: f"{lr:g}")
    panel.ax.set(xlabel="peak learning rate", ylabel="validation loss (nats/token)")
    panel.legend()
    return sheet
