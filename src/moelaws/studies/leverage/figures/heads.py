"""F16: the loss over the number of attention heads, a line a model size."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.leverage.derived.series import SERIES
from moelaws.studies.leverage.figures.common import log_axis

NEAR = 0.005  # App M, leverage: within 0.5 % of the size's least loss


def draw(inputs: Inputs, sweep: str) -> Sheet:
    """Draws the loss over the number of heads; stars are near-optimal."""
    sheet, panel = one_panel()
    runs = SERIES[sweep].runs(inputs)
    if not len(runs):
        panel.message("this tier trains no run\nof this sub-experiment")
        return sheet
    near = runs["L"] <= (1 + NEAR) * runs.groupby("C")["L"].transform("min")
    for C, colour in style.palette(runs["C"]).items():
        rows = at(runs, "C", C)
        width = ", ".join(f"{d}" for d in sorted(rows["d_model"].unique()))
        label = f"{width} ({style.power(C)})"
        panel.line(label, rows["x"], rows["L"], color=colour, marker="o", markersize=3, label=label)
    panel.points(
        "near-optimal", runs["x"][near], runs["L"][near], marker="*", markersize=7,
        color="#c62828", zorder=4, label="within 0.5 %\nof the least",
    )  # fmt: skip
    log_axis(panel.ax.xaxis, SERIES[sweep].label, sorted(runs["x"].unique()), lambda v: f"{v:g}")
    panel.ax.set_ylabel("validation loss (nats/token)")
    panel.legend("$d_{model}$ (FLOPs)")
    return sheet
