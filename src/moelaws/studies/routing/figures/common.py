"""What the figures of the published runs read of the fits of Eq 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures.sheet import Panel, Sheet
from moelaws.fitting.prediction import Prediction, predict
from moelaws.studies.routing.routers import ROUTERS, main_runs


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
