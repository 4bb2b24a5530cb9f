"""Parts of figures of losses: bars of standard errors, and observed over predicted losses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel

# Columns of errors by document: of each loss alone, most of which all runs have in common, for runs
# of several budgets; and paired (``records.paired``), for figures that compare runs of one budget.
ALONE, PAIRED = "L_se", "L_paired_se"


def error_among(rows: pd.DataFrame, paired: str = PAIRED, alone: str = ALONE) -> str:
    """Returns which error to show with the losses of one budget, the same for all ``rows``.

    It is ``paired`` if every run has one, else ``alone``, which may be ten times as large.
    """
    return paired if paired in rows and bool(rows[paired].notna().all()) else alone


def bars(rows: pd.DataFrame, error: str, value: str = "L") -> dict[str, Array]:
    """Returns the ends (n,) of bars of the column ``error`` about ``value``; {} without errors."""
    if error not in rows or not np.isfinite(rows[error].to_numpy(float)).any():
        return {}
    centre, se = rows[value].to_numpy(float), rows[error].to_numpy(float)
    return {"low": centre - se, "high": centre + se}


def contrast_points(
    panel: Panel, series: str, x: str, rows: pd.DataFrame, value: str, **options: Any
) -> None:
    """Draws contrasts ``value`` over ``x`` with both of their errors (``analysis.contrasts``).

    A bar is one paired standard error by documents, of the column ``value``_paired_se. The paler
    one behind it is one by seeds, of ``value``_seed_se.
    """
    red, green, blue, _ = options["color"]
    options = {"markersize": 2.2, **options}  # so that small errors are seen
    pale = {**options, "color": (red, green, blue, 0.35), "marker": "none", "label": None}
    seeds, documents = (bars(rows, f"{value}_{kind}_se", value) for kind in ("seed", "paired"))
    panel.points(f"{series}, by seeds", rows[x], rows[value], **seeds, **pale)
    panel.points(series, rows[x], rows[value], **documents, **options)


def equal_axes(panel: Panel, predicted: Array, L: Array, margin: float, ticks: int) -> None:
    """Sets the same axes for predicted and observed losses (n,), with equality as a line.

    They reach beyond both by the fraction ``margin`` of the range, with at most ``ticks`` ticks.
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
    """Returns the number of losses (n,), the error of their predictions and R2 to ``digits``."""
    n, error = len(L), float(np.sqrt(np.mean((L - predicted) ** 2)))
    lines = [f"$n$ = {n}", f"RMSE = {error:.3g} nats"]
    spread = float(np.sum((L - L.mean()) ** 2))
    if spread > 0 and n > 2:
        lines.append(f"$R^2$ = {1 - n * error**2 / spread:{digits}}")
    return lines


def write_statistics(panel: Panel, lines: Sequence[str], size: float = 6.5) -> None:
    """Writes ``lines`` in the panel's upper left corner, where few predictions lie."""
    place = panel.ax.transAxes
    panel.ax.text(0.04, 0.97, "\n".join(lines), transform=place, va="top", fontsize=size)
