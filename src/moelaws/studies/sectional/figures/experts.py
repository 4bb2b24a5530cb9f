"""The number of slices: the loss at equal FLOPs, and the FLOPs at equal widths."""

from __future__ import annotations

from itertools import cycle

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.arms import ARMS, SIZE, SLICES, WIDTHS
from moelaws.studies.sectional.derived.counted import of_widths
from moelaws.studies.sectional.figures.arms import LOOKS, MARKS, size_name, size_title
from moelaws.studies.sectional.figures.common import LOOKS as FORMS
from moelaws.studies.sectional.model import CORRECTED, PRINTED

SHIFT = 1.03  # of a size or reading to the right of another, so that intervals stand apart


def draw(inputs: Inputs) -> Sheet:
    """Draws the losses of both readings over E, and their counted cost beside the paper's."""
    sheet = Sheet(style.DOUBLE, 3.0, ["rectilinear"] * 2)
    losses, costs = sheet.panels
    _losses(losses, inputs.derived("arms"))
    speeds = inputs.derived("speeds")
    counted = of_widths(inputs.derived("counted"), speeds)
    _costs(costs, counted)
    costs.ax.set_title(f"{size_title(costs, counted)}, at equal widths", loc="left")
    _times(costs, speeds)
    losses.ax.set_ylabel("loss less the dense\nmodel's (nats/token)")
    losses.ax.set_title("(a) at equal FLOPs a token", loc="left")
    costs.ax.set_ylabel("cost a token over that of one slice")
    costs.legend()
    return sheet


def _losses(panel: Panel, table: pd.DataFrame) -> None:
    numbers: set[float] = set()
    sizes = list(table.groupby(SIZE))
    for first, (mark, (size, rows)) in enumerate(zip(cycle(MARKS), sizes, strict=False)):
        for place, arm in enumerate(SLICES, len(SLICES) * first):
            own = rows[rows["arm"] == arm].sort_values("E")
            numbers |= set(own["E"])
            x, ends = own["E"] * SHIFT**place, {"low": own["low"], "high": own["high"]}
            series = f"{arm}, d={size[0]}, n={size[1]}"
            panel.points(series, x, own["difference"], **ends, color=LOOKS[arm], marker=mark)
            panel.ax.plot(x, own["difference"], color=LOOKS[arm], linewidth=0.7)
        if len(sizes) > 1:
            panel.ax.plot([], [], mark, color=style.INK, label=size_name(rows))
    panel.ax.axhline(0, color=style.INK, linewidth=0.8)
    _experts_axis(panel, sorted(numbers))
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def _costs(panel: Panel, rows: pd.DataFrame) -> None:
    curves = {
        "all_ratio": (
            f"{ARMS['slice_all']} (counted)",
            {"color": LOOKS["slice_all"], "marker": "o"},
        ),
        "chunks_ratio": (
            f"{ARMS['slice_chunks']} (counted)",
            {"color": LOOKS["slice_chunks"], "marker": "o"},
        ),
        "printed_ratio": ("$S(E)$, published", {"color": style.GREY, **FORMS[PRINTED]}),
        "corrected_ratio": ("$S(E)$, corrected", {"color": style.INK, **FORMS[CORRECTED]}),
    }
    for column, (label, look) in curves.items():
        panel.line(column, rows["E"], rows[column], label=label, **look)
    _experts_axis(panel, sorted(rows["E"]))


def _times(panel: Panel, table: pd.DataFrame) -> None:
    for arm, sweep in WIDTHS.items():
        rows = table[table["sweep"] == sweep].sort_values("E")
        ends = {"low": rows["low"], "high": rows["high"]}
        panel.points(
            sweep, rows["E"], rows["ratio"], **ends, color=LOOKS[arm], marker="x", linestyle=":",
            linewidth=0.8, label=f"{ARMS[arm]} (time)",
        )  # fmt: skip


def _experts_axis(panel: Panel, numbers: list[float]) -> None:
    panel.ax.set_xscale("log")
    style.fixed_ticks(panel.ax.xaxis, numbers)
    panel.ax.set_xlabel("slices $E$")
