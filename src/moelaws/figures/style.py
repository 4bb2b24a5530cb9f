"""One style for every figure: sizes, type, colours that all eyes tell apart, axis formats."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from moelaws.spec.words import short as short

SINGLE = 3.5  # inches, one column
DOUBLE = 7.0  # inches, the page's width
HEIGHT = 2.7

INK = "#222222"
GREY = "#8a8a8a"
WARN = "#b02a00"
DASHES = (0, (4, 2))  # for published values and references
PUBLISHED: dict[str, Any] = {"color": GREY, "linestyle": DASHES}

Colour = tuple[float, float, float, float]
Palette = Mapping[float, Colour]  # value -> its colour

# Applied around each drawing. The fonts come with Matplotlib, so that they are the same everywhere.
RC: Any = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 6.5,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.labelspacing": 0.35,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "pdf.fonttype": 42,  # TrueType, so that text stays text
    "svg.hashsalt": "moelaws",
    "savefig.dpi": 300,
}
for _axis in ("xtick", "ytick"):
    RC |= {f"{_axis}.labelsize": 7, f"{_axis}.color": INK}
    RC |= {f"{_axis}.major.width": 0.6, f"{_axis}.minor.width": 0.4}
    RC |= {f"{_axis}.major.size": 3, f"{_axis}.minor.size": 1.8}

# viridis without its palest end, which fades on paper.
ORDERED: Colormap = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)), "ordered")


def ordered_colours(n: int) -> list[Colour]:
    """Returns ``n`` colours for ordered values, dark to light; one alone is the darkest."""
    return [tuple(ORDERED(x)) for x in np.linspace(0, 1, max(n, 2))[:n]]


def palette(values: Iterable[float]) -> dict[float, Colour]:
    """Returns a colour for each of the ``values``, dark to light as they rise."""
    known = sorted({float(value) for value in values})
    return dict(zip(known, ordered_colours(len(known)), strict=True))


def power(value: float, _position: object = None) -> str:
    """Returns a number as people write budgets and sizes: 3 x 10^19, 10^20, 250."""
    if value <= 0 or not np.isfinite(value):
        return f"{value:g}"
    if 0.01 <= value < 1_000:
        return f"{value:.3g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    mantissa = f"{value / 10**exponent:.2g}"
    return f"$10^{{{exponent}}}$" if mantissa == "1" else rf"${mantissa}\times10^{{{exponent}}}$"


def fixed_ticks(
    axis: Any, ticks: Iterable[float], text: Callable[[float], str] = "{:g}".format
) -> None:
    """Gives the axis these ``ticks`` and no others, written by ``text``."""
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_locator(NullLocator())


def size_axis(axis: Any, label: str) -> None:
    """Makes an axis of parameter counts logarithmic, with 1-2-5 ticks on a short span."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_label_text(label)
    fixed_ticks(axis, round_ticks(*axis.get_view_interval()), short)


def experts_axis(ax: Axes, numbers: Iterable[float], label: str = "experts $E$") -> None:
    """Makes the x axis one of numbers of experts, logarithmic, with a tick at each of them."""
    ax.set_xscale("log")
    fixed_ticks(ax.xaxis, sorted({float(number) for number in numbers}))
    ax.set_xlabel(label)


LABEL_WIDTH = 0.36  # inches, of the label 0.875 with room beside it
MIN_DISTANCE = 0.09  # of two labels, as a fraction of the axis


def sparsity_axis(ax: Axes, values: Iterable[float], which: str = "x") -> None:
    """Makes an axis one of sparsity S over ``values``, with a tick at each, spaced as -ln(1 - S).

    S crowds towards 1. On this scale every halving of the active fraction is a step of one size.
    """
    getattr(ax, f"set_{which}scale")(
        "function",
        functions=(lambda S: -np.log1p(-np.minimum(S, 1 - 1e-9)), lambda v: -np.expm1(-v)),
    )
    axis = getattr(ax, f"{which}axis")
    ticks = sorted({float(value) for value in values})

    def text(S: float) -> str:
        inches = ax.bbox.width / ax.figure.dpi  # as drawn: a legend beside the axes narrows them
        room = max(MIN_DISTANCE, LABEL_WIDTH / inches * (which == "x"))
        return f"{S:.{3 if S < 0.999 else 5}g}" if S in apart(ticks, room) else ""

    fixed_ticks(axis, ticks, text)
    axis.set_label_text("sparsity $S$")
    ends = -np.log1p(-np.array([ticks[0], ticks[-1]]))
    pad = 0.05 * (float(np.ptp(ends)) or 1.0)
    getattr(ax, f"set_{which}lim")(-np.expm1(pad - ends[0]), -np.expm1(-pad - ends[1]))


def size_symbol(column: str) -> str:
    """Returns the symbol of a table's size column: N, or N_a for active parameters."""
    return "$N_a$" if column.removeprefix("N_").startswith("active") else "$N$"


def size_label(column: str, mark: str = "") -> str:
    """Returns the axis label of a size column: what it counts, symbol, ``mark`` such as ^*."""
    kind = column.removeprefix("N_")
    words = "active parameters" if kind.startswith("active") else "total parameters"
    symbol = size_symbol(column)[:-1] + mark + "$"
    return f"{words} {symbol}" + (" (no embeddings)" if kind.endswith("nonemb") else "")


def round_ticks(low: float, high: float, limit: int = 6) -> list[float]:
    """Returns round numbers from ``low`` to ``high``, as many as ``limit`` allows."""
    low, high = sorted((low, high))
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks: list[float] = []
    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]
        if len(ticks) <= limit:
            break
    return ticks


def apart(values: Sequence[float], distance: float = MIN_DISTANCE) -> list[float]:
    """Returns the first and last of rising sparsities, and those whose labels overlap no others."""
    v = -np.log1p(-np.asarray(values))
    gap = distance * (v[-1] - v[0])
    shown = [0]
    for i in range(1, len(v) - 1):
        if v[i] - v[shown[-1]] >= gap and v[-1] - v[i] >= gap:
            shown.append(i)
    return [values[i] for i in (*shown, len(v) - 1)]
