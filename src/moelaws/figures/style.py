"""One style for every figure: sizes, type, colours that all eyes tell apart.

``style.toml`` has the settings of Matplotlib, the looks of series and the labels of axes.
"""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import Colormap, ListedColormap, to_rgba
from pandas.api.types import is_numeric_dtype

from moelaws.spec.from_toml import table_beside
from moelaws.spec.words import short as short

DOUBLE = 7.0  # inches, the width of a page
HEIGHT = 2.7

TABLE = table_beside(__file__)
RC: Any = TABLE["matplotlib"]  # settings of Matplotlib, applied around each drawing
LOOKS: dict[str, dict[str, Any]] = TABLE["looks"]  # how a series is drawn, by its ``look``
INK, GREY, WARN = RC["text.color"], LOOKS["grey"]["color"], LOOKS["span"]["color"]

Colour = tuple[float, float, float, float]

# viridis without its palest end, which fades on paper.
ORDERED: Colormap = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)), "ordered")

KINDS = [*map(to_rgba, TABLE["kinds"])]  # of words, and the markers beside them
MARKERS = "os^DvPX<>hd"


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
