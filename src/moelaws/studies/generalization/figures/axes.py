"""Logarithmic axes that span little: a few round numbers as ticks."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import MaxNLocator

from moelaws.figures import style


def few_ticks(axis: Any, most: int = 6) -> None:
    """Sets round ticks within the axis's present view; call it when all is drawn."""
    low, high = sorted(axis.get_view_interval())
    if low > 0:
        # Within a factor of three round numbers of a logarithmic scale are too far apart.
        ticks = style.round_ticks(low, high, most)
        if high < 3 * low:
            ticks = list(MaxNLocator(most).tick_values(low, high))
        shown = [tick for tick in ticks if low <= tick <= high]
        style.fixed_ticks(axis, shown, "{:.4g}".format)


def experts_axis(ax: Any, values: Any) -> None:
    """Makes the x axis one of numbers of experts, logarithmic, with a tick at each value."""
    ax.set_xscale("log", base=2)
    style.fixed_ticks(ax.xaxis, sorted({float(value) for value in values}))
    ax.set_xlabel("experts $E$")
