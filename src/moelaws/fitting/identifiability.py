"""What a fit's rows cannot tell apart: parameters, vanishing terms and near optima."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from moelaws.fitting.diagnostics import NearOptima, NearOptimum
from moelaws.fitting.multistart import NEARLY
from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError


def require_identifiable(law: FittableLaw, columns: Columns) -> None:
    """Refuses rows that cannot tell some parameters apart, whatever the losses.

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
            f"the {len(next(iter(columns.values())))} rows cannot tell {what} apart in "
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
    """Returns coefficients of the terms below ``share`` of the prediction in every row."""
    return [name for name, own in law.shares(params, columns).items() if own.max() < share]


def near_optima(law: FittableLaw, theta_KP: Array, values_K: Array, columns: Columns) -> NearOptima:
    """Returns how the optima (K, P), best first, differ from the first.

    ``values_K`` are their objectives; predictions are compared at the rows ``columns``.
    """
    prediction = law.on_scale(law.predict_batch(theta_KP, columns))
    scale = abs(values_K[0]) or 1.0
    optima = [
        NearOptimum(
            params=dict(zip(law.names, law.natural(theta).tolist(), strict=True)),
            objective_excess=float((value - values_K[0]) / scale),
            parameters_differ=float(np.abs(theta - theta_KP[0]).max()),
            prediction_differs=float(np.abs(own - prediction[0]).max()),
        )
        for theta, value, own in zip(theta_KP[1:], values_K[1:], prediction[1:], strict=True)
    ]
    return NearOptima(NEARLY, optima)
