"""F12b, F13b, F14b, F14d: leverage of single runs over compute, against the baseline's curve."""

from __future__ import annotations

import numpy as np

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.leverage.derived.series import SERIES
from moelaws.studies.leverage.figures.common import (
    compute_axis,
    leverage_axis,
    leverage_points,
)

LEGENDS = {
    "granularity_weak": "granularity $G$",
    "shared": "$E_s/(E_a+E_s)$",
    "dense_layers": "share of\ndense layers",
    "attention": "attention's\nshare",
}
SPREAD = 9.0  # points between the first and the last value at a budget
DIGITS = {"attention": 1}  # each size has shares of its own


def over_compute(inputs: Inputs, sweep: str, baseline: str) -> Sheet:
    """Draws EL of each run over its compute, a colour a value of what the sweep varies."""
    sheet, panel = one_panel()
    table = inputs.derived("singles")
    table = table[table["sweep"] == sweep]
    table = table.assign(x=table["x"].round(DIGITS.get(sweep, 2)))
    if not table["EL"].notna().any():
        panel.message(
            "this tier trains no run\nof this sub-experiment"
            if not len(table)
            else "no run's loss lies on\nthe baseline's curve"
        )
        return sheet
    values = sorted(table["x"].unique())
    colours = style.palette(values)
    for i, x in enumerate(values):
        rows = at(table, "x", x).sort_values("C")
        aside = SPREAD * (i / max(len(values) - 1, 1) - 0.5)  # bars of one budget side by side
        leverage_points(
            panel, f"{SERIES[sweep].label} {x:g}", rows["C"], rows, label=f"{x:.2g}", aside=aside,
            color=colours[x], markersize=3,
        )  # fmt: skip
    leverage_axis(panel, np.asarray(table["EL"], float))
    panel.ax.set_ylabel(f"EL against {baseline}")
    compute_axis(panel)
    panel.legend(LEGENDS[sweep])
    return sheet
