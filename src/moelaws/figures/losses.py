"""Parts of figures of losses: bars of standard errors, and observed over predicted losses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from moelaws.analysis.inputs import at
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


def observed_over_predicted(
    panel: Panel,
    rows: pd.DataFrame,
    column: str,
    palette: style.Palette,
    label: Callable[[float], str],
    prefix: str = "",  # of the series' names
    **look: Any,
) -> None:
    """Draws the ``rows``' ``L`` over ``predicted`` with its error, coloured by ``column``."""
    for value, colour in palette.items():
        group = at(rows, column, value)
        if len(group):
            own = {**bars(group, ALONE), "color": colour, "label": label(value), **look}
            series = f"{prefix}{column}={value:.4g}"
            panel.points(series, group["predicted"], group["L"], **own)


def equal_axes(panel: Panel, rows: pd.DataFrame) -> None:
    """Sets the same axes for ``predicted`` and observed losses ``L``, with equality as a line."""
    both = rows[["predicted", "L"]].to_numpy(float)
    beyond = 0.05 * float(np.ptp(both)) or 0.01
    ends = [float(both.min()) - beyond, float(both.max()) + beyond]
    line = {"color": style.GREY, "lw": 0.8, "ls": style.DASHES, "zorder": 1}
    panel.ax.axline((ends[0], ends[0]), slope=1, **line)
    panel.ax.axis([*ends, *ends])
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
