"""What the figures of the published runs share: colours, labels, and lines of a fitted law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.prediction import Prediction, predict
from moelaws.studies.routing.routers import ROUTERS, main_runs

EXPERTS = "experts"
LOSS = "validation loss (nats/token)"
SIZE = "base parameters $N$"
EFFECTIVE = "effective parameters $\\bar{N}$"
# Of the routers: colours that all eyes tell apart, and marks.
COLOURS = {"S-Base": "#0b5fa5", "RL-R": "#d1730f", "Hash": "#4b8b3b"}
MARKS = {"S-Base": "o", "RL-R": "s", "Hash": "^"}
POINT: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}


def expert_colours(runs: pd.DataFrame) -> dict[float, style.Colour]:
    """Returns a colour for each number of experts of the ``runs``, dark to light."""
    return style.palette(runs["E"])


def curve(inputs: FittedInputs, fit: str, **columns: Any) -> Prediction:
    """Returns what the fit predicts at ``columns``, with its interval."""
    report = inputs.fit(fit)
    law, part = laws.fittable(report.law), report.part({})
    draws = inputs.draws(fit).reindex(columns=[*law.names]).to_numpy(float)
    full = np.broadcast_arrays(*(np.asarray(x, float) for x in columns.values()))
    named = dict(zip(columns, full, strict=True))
    return predict(law, part.estimates(), draws, part.residuals, named, report.level)


def line(inputs: FittedInputs, fit: str, **columns: Any) -> Array:
    """Returns what the fit predicts at ``columns``, without an interval."""
    report = inputs.fit(fit)
    return laws.fittable(report.law).predict(report.part({}).estimates(), columns)


def of_router(inputs: FittedInputs, fit: str) -> pd.DataFrame:
    """Returns the runs that a router's fit was made of, the dense ones among them."""
    return main_runs(inputs.rows(fit)).sort_values(["N_dense", "E"])


def router_panels(sheet: Sheet) -> list[tuple[Panel, str, str]]:
    """Returns (panel, router, fit) for a sheet of three panels, with their titles set."""
    triples = [(p, r.name, r.fit) for p, r in zip(sheet.panels, ROUTERS, strict=True)]
    for panel, router, _ in triples:
        panel.ax.set_title(f"({panel.name}) {router}", loc="left")
    return triples


def loss_axis(axis: Any, low: float, high: float, ticks: tuple[float, ...]) -> None:
    """Makes an axis one of losses: logarithmic, with plain ticks."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    style.fixed_ticks(axis, [t for t in ticks if low <= t <= high], "{:.1f}".format)


def expert_axis(ax: Any) -> None:
    """Makes the x axis one of numbers of experts, with a tick at every other power of two."""
    ax.set_xscale("log", base=2)
    style.fixed_ticks(ax.xaxis, [1, 4, 16, 64, 256])
    ax.set_xlim(0.8, 640)
