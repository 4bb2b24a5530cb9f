"""Tables that a fit adds to: its predictions for runs, and its law as curves over x."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import predicted
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import group_draws, has_value
from moelaws.fitting.variables import read_variables
from moelaws.spec.readers import Series


def with_predictions(inputs: FittedInputs, fit: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows that the fit knows, with ``predicted`` and ``held``: 1 if held out."""
    of = predicted(inputs, fit, rows)
    return of.rows.assign(predicted=of.value, held=of.held.astype(int))[of.used | of.held]


def curves(inputs: FittedInputs, series: Series, rows: pd.DataFrame) -> pd.DataFrame:
    """Returns points of the fitted law for each value of ``by``, and the cells of its first row.

    Columns are x, y, low and high. x spans all ``rows`` and ``beyond``; a value for which a split
    fit has no part has no points.
    """
    fit = series.curve
    report, law, spec = inputs.fit(fit), inputs.law(fit), inputs.spec(fit)
    ends = rows[series.x].min() / series.beyond, rows[series.x].max() * series.beyond
    x = np.geomspace(*ends, series.points)
    groups = [group for _, group in rows.groupby(series.by)] if series.by else [rows]
    drawn = []
    for group in groups:
        first = group.iloc[0]
        for part in report.parts:
            if not all(has_value([first[name]], part.where[name]) for name in part.where):
                continue
            grid = pd.concat([group.head(1)] * len(x), ignore_index=True).assign(**{series.x: x})
            draws = group_draws(inputs.fits[fit], report, part)
            values = read_variables(law, grid, spec).values
            of = predict(law, part, draws, values, report.level)
            drawn.append(grid.assign(**{series.y: of.value}, low=of.low, high=of.high))
    return pd.concat(drawn) if drawn else rows.head(0)
