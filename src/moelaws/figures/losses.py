"""Parts of figures of losses: bars of standard errors, and observed over predicted losses."""

from collections.abc import Callable, Mapping, Sequence
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
HOLLOW: dict[str, Any] = {"marker": "s", "markerfacecolor": "white", "markeredgewidth": 0.7}


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


def equal_axes(panel: Panel, rows: pd.DataFrame) -> None:
    """Sets the same axes for ``predicted`` and observed losses ``L``, with equality as a line."""
    both = rows[["predicted", "L"]].to_numpy(float)
    beyond = 0.05 * float(np.ptp(both)) or 0.01
    draw_equality(panel, float(both.min()) - beyond, float(both.max()) + beyond)
    panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="observed loss (nats/token)")
    for axis in (panel.ax.xaxis, panel.ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))


def draw_equality(panel: Panel, low: float, high: float) -> None:
    """Draws equality from ``low`` to ``high``, the limits of both axes."""
    panel.ax.axline((low, low), (high, high), **style.PUBLISHED, linewidth=0.8, zorder=1)
    panel.ax.axis([low, high, low, high])


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


def observed_over_predicted(
    panel: Panel,
    kinds: Mapping[str, pd.DataFrame],
    column: str,
    colours: style.Palette,
    label: Callable[[float], str],
    statistics: Callable[[pd.DataFrame], list[str]] = error_lines,
) -> None:
    """Draws the losses ``L`` over those ``predicted``, with errors, equality and statistics.

    Each of the ``kinds`` of runs has a name, which is empty where there is but one kind. The runs
    are coloured by ``column``; those of a second kind have hollow marks.
    """
    lines: list[str] = []
    for i, (kind, rows) in enumerate(kinds.items()):
        look = HOLLOW if i else style.EDGE
        for value, colour, own in style.groups(rows, column, colours):
            series, name = f"{column}={value:.4g}", label(value)
            panel.points(
                f"{kind}, {series}" if kind else series,
                own["predicted"],
                own["L"],
                **bars(own, ALONE),
                color=colour,
                label=f"{name} ({kind})" if i else name,
                **look,
            )
        first, *others = statistics(rows)
        lines += [f"{kind}: {first}" if kind else first, *others]
    equal_axes(panel, pd.concat(kinds.values()))
    write_statistics(panel, lines)
