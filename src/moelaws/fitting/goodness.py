"""How good predictions are: the errors that a fit's report states."""

from __future__ import annotations

import numpy as np

from moelaws.fitting.objective import huber
from moelaws.laws.base import Array


def errors(observed: Array, predicted: Array, delta: float) -> dict[str, float | None]:
    """Returns the errors of predictions (n,) of a response.

    Returns:
        n; r2, rmse, mse and bias (mean of predicted minus observed), in the response's unit;
        huber_sum and huber_mean of the residuals of its logarithm at ``delta``. None where a
        number is not defined: r2 of equal observations, a logarithm of a negative number.
    """
    residual = predicted - observed
    spread = float(((observed - observed.mean()) ** 2).sum())
    mse = float((residual**2).mean())
    positive = (predicted > 0).all() and (observed > 0).all()
    losses = huber(np.log(predicted) - np.log(observed), delta) if positive else None
    return {
        "n": len(observed),
        "r2": 1 - float((residual**2).sum()) / spread if np.ptp(observed) > 0 else None,
        "rmse": mse**0.5,
        "mse": mse,
        "bias": float(residual.mean()),
        "huber_sum": None if losses is None else float(losses.sum()),
        "huber_mean": None if losses is None else float(losses.mean()),
    }
