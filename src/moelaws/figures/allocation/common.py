"""What the allocation paper's figures share: colours by sparsity, bars of the loss, equality."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel

Colour = tuple[float, float, float, float]
DASHES = (0, (4, 2))


def colours(values: Iterable[float]) -> dict[float, Colour]:
    """A colour for each of ``values``, rounded to 9 digits, in rising order."""
    known = sorted({round(float(value), 9) for value in values})
    return dict(zip(known, style.ordered_colours(len(known)), strict=True))


def percent(S: float) -> str:
    """A sparsity as the paper writes it: 95.38%."""
    return f"{100 * S:.2f}%"


def bars(rows: pd.DataFrame) -> dict[str, Array]:
    """Ends of one standard error of the loss, where the rows have it."""
    L, se = rows["L"].to_numpy(float), rows["L_se"].to_numpy(float)
    return {"low": L - se, "high": L + se} if np.isfinite(se).any() else {}


def ratio_axis(panel: Panel, which: str, low: float, high: float, label: str) -> None:
    """A logarithmic axis of ratios r from ``low`` to ``high`` with round ticks."""
    axis = getattr(panel.ax, f"{which}axis")
    panel.ax.set(**{f"{which}scale": "log"})
    getattr(panel.ax, f"set_{which}lim")(low / 1.12, high * 1.12)
    axis.set_major_locator(FixedLocator(style.round_ticks(low / 1.12, high * 1.12)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_label_text(label)
