"""Parts of figures of losses: bars of standard errors, and observed over predicted losses."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel


def bars(rows: pd.DataFrame, error: str, value: str = "L") -> dict[str, Array]:
    """Returns the ends (n,) of bars of the column ``error`` about ``value``; {} without errors."""
    if error not in rows or not np.isfinite(rows[error].to_numpy(float)).any():
        return {}
    centre, se = rows[value].to_numpy(float), rows[error].to_numpy(float)
    return {"low": centre - se, "high": centre + se}


def equal_axes(panel: Panel, rows: pd.DataFrame) -> None:
    """Sets the same axes for ``predicted`` and observed losses ``L``, with equality as a line."""
    both = rows[["predicted", "L"]].to_numpy(float)
    beyond = 0.05 * float(np.ptp(both)) or 0.01
    low, high = float(both.min()) - beyond, float(both.max()) + beyond
    panel.ax.axline((low, low), (high, high), **style.PUBLISHED, linewidth=0.8, zorder=1)
    panel.ax.axis([low, high, low, high])
    panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="observed loss (nats/token)")
    for axis in (panel.ax.xaxis, panel.ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def error_lines(rows: pd.DataFrame) -> list[str]:
    """Returns the number of ``rows``, the error of their ``predicted`` losses, and its R2."""
    n, L = len(rows), rows["L"]
    error = float(np.sqrt(np.mean((L - rows["predicted"]) ** 2)))
    lines = [f"$n$ = {n}", f"RMSE = {error:.3g} nats"]
    spread = float(np.sum((L - L.mean()) ** 2))
    if spread > 0 and n > 2:
        lines.append(f"$R^2$ = {1 - n * error**2 / spread:.4f}")
    return lines


def write_statistics(panel: Panel, lines: Sequence[str]) -> None:
    """Writes ``lines`` in the panel's upper left corner, where few predictions lie."""
    place = panel.ax.transAxes
    panel.ax.text(0.04, 0.97, "\n".join(lines), transform=place, va="top", fontsize=6.5)
