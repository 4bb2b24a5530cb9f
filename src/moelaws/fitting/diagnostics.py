"""How good a fit is: errors, likelihood criteria, and what the rows cannot tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.fitting.multistart import NEARLY
from moelaws.fitting.objective import huber
from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.kinds import LinearLaw
from moelaws.spec.errors import UserError


def errors(observed: Array, predicted: Array, delta: float) -> dict[str, float | None]:
    """Errors of predictions (n,) of a response.

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


def require_identifiable(law: FittableLaw, columns: Columns, label: str) -> None:
    """Refuse rows that cannot tell some parameters apart, whatever the losses.

    Raises:
        UserError: naming the variables that do not vary and the parameters that hang on them.
    """
    constant = [f"{name} = {x[0]:.6g}" for name, x in columns.items() if np.ptp(x) == 0]
    if isinstance(law, LinearLaw):
        what = ", ".join(_dependent(law, columns))
    else:
        what = ", ".join(f"{name} from {other}" for name, other in law.confounded(columns))
    if what:
        why = f"all have {' and '.join(constant)}" if constant else "they vary too little"
        raise UserError(
            f"{label}: the {len(next(iter(columns.values())))} rows cannot tell {what} apart in "
            f"{law.ref}: {why}; add rows that vary"
        )


def _dependent(law: LinearLaw, columns: Columns) -> list[str]:
    """Parameters whose design columns are linearly dependent on these rows."""
    X = law.design(columns)
    X = X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny)
    _, s, vectors = np.linalg.svd(X, full_matrices=False)
    null = vectors[s < 1e-10 * s[0]]
    involved = (np.abs(null) > 1e-6).any(axis=0) if len(null) else np.zeros(X.shape[1], bool)
    return [name for name, is_in in zip(law.names, involved, strict=True) if is_in]


def vanishing(
    law: FittableLaw, params: Mapping[str, float], columns: Columns, share: float = 1e-4
) -> list[str]:
    """Coefficients of the terms that are below ``share`` of the prediction in every row."""
    return [name for name, own in law.shares(params, columns).items() if own.max() < share]


def others(law: FittableLaw, theta_KP: Array, values_K: Array, columns: Columns) -> dict[str, Any]:
    """The optima (K, P), best first, that are nearly as good as the first and far from it.

    Returns the factor of the objective within which they were looked for, and for each but the
    first: its parameters and by how much they differ from the best's at most (of coefficients,
    their logarithms), its objective's excess over the best's, and by how much its predictions of
    the fitted rows differ at most (relatively, for a law on a logarithm's scale).
    """
    prediction = law.on_scale(law.predict_batch(theta_KP, columns))
    scale = abs(values_K[0]) or 1.0
    return {
        "within": NEARLY,
        "found": [
            {
                "params": dict(zip(law.names, law.natural(theta).tolist(), strict=True)),
                "objective_excess": float((value - values_K[0]) / scale),
                "parameters_differ": float(np.abs(theta - theta_KP[0]).max()),
                "prediction_differs": float(np.abs(own - prediction[0]).max()),
            }
            for theta, value, own in zip(theta_KP[1:], values_K[1:], prediction[1:], strict=True)
        ],
    }
