"""A fitted law at query points, with intervals of its mean and of a new observation.

Needs NumPy alone, so that one prediction is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Array, Columns, FittableLaw


@dataclass(frozen=True)
class Prediction:
    """The response at query points, arrays of shape (n,) in its natural unit.

    ``low`` and ``high`` bound the mean (the law's value with other data of the same kind);
    ``new_low`` and ``new_high`` one new observation. NaN where nothing is known of the error.
    """

    value: Array
    low: Array
    high: Array
    new_low: Array
    new_high: Array


def predict(
    law: FittableLaw,
    params: Mapping[str, float],
    draws: Array,
    residuals: Residuals,
    columns: Mapping[str, Any],
    level: float,
) -> Prediction:
    """Evaluates the fitted law at ``columns`` (numbers or arrays of one shape (n,)).

    Args:
        law: the fitted law.
        params: its estimates, natural scale.
        draws: (B, P) of the parameters, natural scale.
        residuals: the fit's residuals as ``residuals.describe`` gives them.
        columns: a value for each variable.
        level: of the intervals.
    """
    flat = {k: np.atleast_1d(np.asarray(v, float)) for k, v in law.columns(columns).items()}
    value = law.predict(params, flat)
    nothing = np.full(value.shape, np.nan)
    if not len(draws):
        return Prediction(value, nothing, nothing, nothing, nothing)
    mean_Bn = law.on_scale(of_draws(law, draws, flat))
    low, high = (_natural(law, end) for end in percentiles(mean_Bn, level))
    if residuals.quantiles is None:
        return Prediction(value, low, high, nothing, nothing)
    errors = np.asarray(residuals.quantiles)
    new = [percentiles((column[:, None] + errors).ravel(), level) for column in mean_Bn.T]
    new_low, new_high = _natural(law, np.array(new).T)
    return Prediction(value, low, high, new_low, new_high)


def of_draws(law: FittableLaw, draws: Array, columns: Columns) -> Array:
    """Returns the predictions (B, n) of draws (B, P), natural scale, at ``columns`` (n,)."""
    theta = np.array([law.vector(dict(zip(law.names, row, strict=True))) for row in draws])
    return law.predict_batch(theta, columns)


def _natural(law: FittableLaw, values: Array) -> Array:
    return np.exp(values) if law.log_response else values
