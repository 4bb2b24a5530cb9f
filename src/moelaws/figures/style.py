"""One style for every figure: sizes, type, colours that all eyes tell apart."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import Colormap, ListedColormap, to_rgba
from pandas.api.types import is_numeric_dtype

from moelaws.spec.words import short as short

DOUBLE = 7.0  # inches, the width of a page
HEIGHT = 2.7

INK = "#222222"
GREY = "#8a8a8a"
WARN = "#b02a00"
DASHES = (0, (4, 2))  # for published values and references
EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}  # of crowded marks

Colour = tuple[float, float, float, float]

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

# Of words, such as routers: colours that all eyes tell apart, and the markers beside them.
KINDS = [
    *map(to_rgba, ("#0b5fa5", "#d1730f", "#4b8b3b", "#8a6fb0", "#c0504d", "#8c564b", "#e377c2",
                   "#17becf", "#bcbd22", GREY, INK))
]  # fmt: skip
MARKERS = "os^DvPX<>hd"
# How a series is drawn, by its ``look``
LOOKS: dict[str, dict[str, Any]] = {
    "marks": {},
    "small": {"markersize": 2.2},  # so that small errors are seen
    "ink": {"color": INK},
    "grey": {"color": GREY, "linewidth": 0.8},
    "published": {"color": GREY, "linestyle": DASHES, "linewidth": 0.8, "zorder": 1},
    "star": {
        "marker": "*",
        "markersize": 8,
        "markeredgecolor": INK,
        "markeredgewidth": 0.6,
        "zorder": 4,
    },
    "cross": {"marker": "x"},
    "squares": {"marker": "s"},
    # Open marks stay visible where they lie on each other.
    "open": {"markerfacecolor": "none", "markeredgewidth": 0.8},
    "dashed": {"linestyle": DASHES, "linewidth": 0.9},
    "span": {"color": WARN, "linewidth": 3, "alpha": 0.5},  # an interval of x
    "dotted": {"linestyle": (0, (1, 1.5)), "linewidth": 0.9},
    "pale": {"alpha": 0.35, "marker": "none"},
    "tiles": {"marker": "s", "markersize": 7},
    "steps": {"drawstyle": "steps-mid", "marker": "none"},  # of a histogram
    "frames": {
        "color": WARN,
        "marker": "s",
        "markersize": 8.5,
        "markerfacecolor": "none",
        "markeredgewidth": 1.2,
    },
}


def palette(values: Iterable[Any]) -> dict[Any, Colour]:
    """Returns a colour for each of the ``values``, of numbers dark to light as they rise.

    Words have the colours of ``KINDS``; a categorical column gives each the same one everywhere.
    """
    values = pd.Series(values)
    if is_numeric_dtype(values):
        known = in_order(values)
        colours = map(ORDERED, np.linspace(0, 1, max(len(known), 2)))  # one alone is the darkest
        return dict(zip(known, colours, strict=False))
    words = in_order(values) if values.dtype != "category" else values.cat.categories
    return dict(zip(words, cycle(KINDS), strict=False))


def in_order(values: "pd.Series[Any]") -> list[Any]:
    """Returns the different values: numbers as they rise, words as they come or are declared."""
    if values.dtype == "category":
        return [word for word in values.cat.categories if word in set(values)]
    known = values.dropna().unique()
    return sorted(map(float, known)) if is_numeric_dtype(values) else [*known]


def size_label(column: str) -> str:
    """Returns the axis label of a size column: what it counts, and its symbol."""
    kind = column.removeprefix("N_")
    words = "active parameters $N_a$" if kind.startswith("active") else "total parameters $N$"
    return words + (" (no embeddings)" if kind.endswith("nonemb") else "")
