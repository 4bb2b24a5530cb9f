"""Logarithmic axes that span little: a few round numbers as ticks."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from moelaws.figures.style import round_ticks


def few_ticks(axis: Any, most: int = 6) -> None:
    """Round ticks within the axis's present view; to be called when all is drawn."""
    low, high = sorted(axis.get_view_interval())
    if low > 0:
        # Within a factor of three round numbers of a logarithmic scale are too far apart.
        ticks = round_ticks(low, high, most)
        if high < 3 * low:
            ticks = list(MaxNLocator(most).tick_values(low, high))
        axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        axis.set_minor_locator(NullLocator())


def experts_axis(ax: Any, values: Any) -> None:
    """A logarithmic axis of numbers of experts with a tick at each of ``values``."""
    ax.set_xscale("log", base=2)
    ticks = sorted({float(value) for value in values})
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("experts $E$")
