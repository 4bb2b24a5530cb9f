"""How the figures of the published runs look: labels, colours, marks and axes."""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws.figures import style

EXPERTS = "experts"
LOSS = "validation loss (nats/token)"
SIZE = "base parameters $N$"
EFFECTIVE = "effective parameters $\\bar{N}$"
# Of the routers: colours that all eyes tell apart, and marks.
COLOURS = {"S-Base": "#0b5fa5", "RL-R": "#d1730f", "Hash": "#4b8b3b"}
MARKS = {"S-Base": "o", "RL-R": "s", "Hash": "^"}
POINT: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}


def expert_colours(runs: pd.DataFrame) -> dict[float, style.Colour]:
    """Returns a colour for each number of experts of the ``runs``, dark to light."""
    return style.palette(runs["E"])


def expert_label(E: float) -> str:
    """Returns a number of experts as legends have it."""
    return "1 (dense)" if E == 1 else f"{E:g}"


def loss_axis(axis: Any, low: float, high: float, ticks: tuple[float, ...]) -> None:
    """Makes an axis one of losses: logarithmic, with plain ticks."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    style.fixed_ticks(axis, [t for t in ticks if low <= t <= high], "{:.1f}".format)


def expert_axis(ax: Any) -> None:
    """Makes the x axis one of numbers of experts, with a tick at every other power of two."""
    ax.set_xscale("log", base=2)
    style.fixed_ticks(ax.xaxis, [1, 4, 16, 64, 256])
    ax.set_xlim(0.8, 640)
