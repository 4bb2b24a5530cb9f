"""Axes by what they show: sizes, compute, experts, sparsities, and others that are logarithmic."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

Text = Callable[[float], str]

POWER_WIDTH = 0.5  # inches, of a label such as 2 x 10^10 with room beside it
LABEL_WIDTH = 0.36  # inches of a label such as 0.875
NARROW = 1.9  # inches, of an axis with room for three such labels


def power(value: float) -> str:
    """Returns a number as people write budgets and sizes: 3 x 10^19, 10^20, 250."""
    if value <= 0 or not np.isfinite(value):
        return f"{value:g}"
    if 0.01 <= value < 1_000:
        return f"{value:.3g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    mantissa = f"{value / 10**exponent:.2g}"
    return f"$10^{{{exponent}}}$" if mantissa == "1" else rf"${mantissa}\times10^{{{exponent}}}$"


def inches(ax: Any) -> Any:
    """Returns the width of axes by now; once a legend stands beside them, they are narrower."""
    return ax.bbox.width / ax.figure.dpi


def percent(value: float) -> str:
    """Returns a fraction in percent, as papers write activation ratios: 3.12 %."""
    return f"{100 * value:.3g} %"


def fixed_ticks(axis: Any, ticks: Iterable[float], text: Text) -> None:
    """Gives the axis these ``ticks`` and no others, written by ``text``."""
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def log(
    axis: Any,
    label: str,
    ticks: Iterable[float] = (),
    text: Text = "{:.4g}".format,
) -> None:
    """Makes an axis logarithmic, with ``ticks`` or with round ones over what it shows by now.

    Labels such as 2 x 10^10 are left out where they lack room.
    """
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_label_text(label)
    limit = 3 if axis.axis_name == "x" and inches(axis.axes) < NARROW else 5
    low, high = sorted(axis.get_view_interval())
    known = list(ticks) or round_ticks(low, high, limit)

    def with_room(value: float) -> str:
        room = POWER_WIDTH / inches(axis.axes) * np.log(high / low) * (axis.axis_name == "x")
        return power(value) if value in apart(known, room, np.log) else ""

    fixed_ticks(axis, known, with_room if text is power else text)


def compute(axis: Any, budgets: Iterable[float], label: str) -> None:
    """Makes an axis one of compute, with a tick at each of a few ``budgets``, or round ones."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = sorted(axis.get_view_interval())
    if high < 1.5 * low:  # one budget
        low, high = low / 2, high * 2
    axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})
    known = sorted(set(budgets))
    ticks = known if 0 < len(known) <= 4 else round_ticks(low, high, 4)
    log(axis, label, ticks, power)


def experts(ax: Axes, numbers: Iterable[float], label: str) -> None:
    """Makes the x axis one of numbers of experts, with a tick at each of them, or at a few."""
    known = sorted({float(number) for number in numbers})
    log(ax.xaxis, label, known[:: -(-len(known) // 7)])


def every_other(values: Iterable[float]) -> list[float]:
    """Returns the different ``values``, rising; of more than four every other one."""
    known = sorted({float(value) for value in values})
    return known[:: 2 if len(known) > 4 else 1]


MIN_DISTANCE = 0.09  # of two labels, as a fraction of the axis
USUAL = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # sparsities
MOST = 20  # sparsities of a grid; more are those of a curve


def sparsity(
    ax: Axes, values: Iterable[float], which: str = "x", label: str = "sparsity $S$"
) -> None:
    """Makes an axis one of sparsity S over ``values``, with a tick at each, spaced as -ln(1 - S).

    S crowds towards 1. On this scale every halving of the active fraction is a step of one size.
    Over a curve's values the ticks are usual sparsities.
    """
    getattr(ax, f"set_{which}scale")(
        "function",
        functions=(lambda S: -np.log1p(-np.minimum(S, 1 - 1e-9)), lambda v: -np.expm1(-v)),
    )
    axis = getattr(ax, f"{which}axis")
    known = sorted({float(value) for value in values})
    usual = [S for S in USUAL if known[0] <= S <= known[-1]]
    ticks = usual if len(known) > MOST and len(usual) > 1 else known

    def text(S: float) -> str:
        part = max(MIN_DISTANCE, LABEL_WIDTH / inches(ax) * (which == "x"))
        room = part * float(np.ptp(halvings(ticks)))
        return f"{S:.{3 if S < 0.999 else 5}g}" if S in apart(ticks, room, halvings) else ""

    fixed_ticks(axis, ticks, text)
    axis.set_label_text(label)
    ends = halvings([known[0], known[-1]])
    pad = 0.05 * (float(np.ptp(ends)) or 1.0)
    getattr(ax, f"set_{which}lim")(-np.expm1(pad - ends[0]), -np.expm1(-pad - ends[1]))


def round_ticks(low: float, high: float, limit: int = 5) -> list[float]:
    """Returns round numbers from ``low`` to ``high``, as many as ``limit`` allows.

    On a short span, where a logarithmic scale has few of them, they are evenly spaced.
    """
    if high < 3 * low:
        even = MaxNLocator(limit - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [float(f"{tick:.6g}") for tick in even if low <= tick <= high]
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = []
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]
        if len(ticks) <= limit:
            break
    return ticks


def halvings(S: ArrayLike) -> NDArray[np.float64]:
    """Returns sparsities on the scale on which each halving of the active fraction is a step."""
    return np.asarray(-np.log1p(-np.asarray(S)), float)


def apart(
    values: Sequence[float], room: float, scale: Callable[[ArrayLike], NDArray[np.float64]]
) -> list[float]:
    """Returns the first and last of rising values, and those with ``room`` about them."""
    v = scale(values)
    shown = [0]
    for i in range(1, len(v) - 1):
        if v[i] - v[shown[-1]] >= room and v[-1] - v[i] >= room:
            shown.append(i)
    return [values[i] for i in (*shown, len(v) - 1)]
