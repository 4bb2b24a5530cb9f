"""What figures of losses share: bars of a standard error, and observed over predicted losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel


def bars(rows: pd.DataFrame) -> dict[str, Array]:
    """The ends of one standard error of the loss by document, where the rows have it."""
    L, se = rows["L"].to_numpy(float), errors(rows).to_numpy(float)
    return {"low": L - se, "high": L + se} if np.isfinite(se).any() else {}


def errors(rows: pd.DataFrame) -> pd.Series:
    """Returns the standard error (n,) by which the losses of the rows may be compared.

    It is paired by document where the runs' losses by document are on record
    (``records.paired``); else that of each loss alone, most of which the runs share.
    """
    alone = rows["L_se"].astype(float)
    return rows["L_paired_se"].astype(float).fillna(alone) if "L_paired_se" in rows else alone


def equal_axes(panel: Panel, predicted: Array, L: Array, margin: float, ticks: int) -> None:
    """Sets the same axes for predicted and observed losses (n,), with equality as a line.

    They reach beyond both by the share ``margin`` of the range, with at most ``ticks`` ticks.
    """
    both = np.concatenate([predicted, L])
    beyond = margin * float(np.ptp(both)) or 0.01
    ends = [float(both.min()) - beyond, float(both.max()) + beyond]
    line = {"color": style.GREY, "lw": 0.8, "ls": style.DASHES, "zorder": 1}
    panel.ax.axline((ends[0], ends[0]), slope=1, **line)
    panel.ax.set(xlim=ends, ylim=ends)
    panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="observed loss (nats/token)")
    for axis in (panel.ax.xaxis, panel.ax.yaxis):
        axis.set_major_locator(MaxNLocator(ticks))


def error_lines(predicted: Array, L: Array, digits: str = ".3g") -> list[str]:
    """How many losses (n,) were predicted, their error and, as ``digits`` format it, their R2."""
    n, error = len(L), float(np.sqrt(np.mean((L - predicted) ** 2)))
    lines = [f"$n$ = {n}", f"RMSE = {error:.3g} nats"]
    spread = float(np.sum((L - L.mean()) ** 2))
    if spread > 0 and n > 2:
        lines.append(f"$R^2$ = {1 - n * error**2 / spread:{digits}}")
    return lines


def write_statistics(panel: Panel, lines: Sequence[str], size: float = 6.5) -> None:
    """Writes the panel's upper left corner, where predictions above the losses do not lie."""
    place = panel.ax.transAxes
    panel.ax.text(0.04, 0.97, "\n".join(lines), transform=place, va="top", fontsize=size)
