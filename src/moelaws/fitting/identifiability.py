"""What a fit's rows cannot tell apart: parameters, vanishing terms and near optima."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from moelaws.fitting.diagnostics import NearOptima, NearOptimum
from moelaws.fitting.multistart import NEARLY
from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError

# Of a change of the parameters, relative to the one that moves predictions most: below the first it
# does not move those of the fitted rows, above the second it moves those of held-out rows.
WITHOUT_EFFECT, EFFECT = 1e-9, 1e-6


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


def require_determined(
    law: FittableLaw, params: Mapping[str, float], fitted: Columns, held: Columns
) -> None:
    """Refuses a fit whose rows do not determine what it predicts for other rows.

    Some change of the parameters moves no prediction of the ``fitted`` rows, which are at least as
    many as the parameters, and moves those of the ``held`` ones: an exponent of E, say, where all
    fitted rows are dense.

    Raises:
        UserError: naming the parameters that the fitted rows do not determine.
    """
    J_fitted, J_held = (_jacobian(law, params, columns) for columns in (fitted, held))
    J_fitted = J_fitted / np.sqrt(J_fitted.shape[1])
    directions, sizes, _ = np.linalg.svd(J_fitted, full_matrices=False)
    moved = np.abs(directions.T @ J_held)  # (P directions, held rows)
    moves = (sizes <= WITHOUT_EFFECT * sizes[0])[:, None] & (moved > EFFECT * moved.max())
    if not moves.any():
        return
    involved = np.abs(directions[:, moves.any(axis=1)]).max(axis=1) > 1e-3
    names = [name for name, is_in in zip(law.names, involved, strict=True) if is_in]
    ends = (", ".join(names[:-1]), names[-1])
    constant = [f"{name} = {x[0]:.6g}" for name, x in fitted.items() if np.ptp(x) == 0]
    why = f"all have {' and '.join(constant)}, so they " if constant else ""
    raise UserError(
        f"the fitted rows {why}cannot determine {' and '.join(filter(None, ends))}"
        f", on which the prediction of {int(moves.any(axis=0).sum())} of the {J_held.shape[1]} "
        "held-out rows depends"
    )


def _jacobian(law: FittableLaw, params: Mapping[str, float], columns: Columns) -> Array:
    """d prediction / d working-scale parameter, (P, n)."""
    model = law.model(law.columns(columns))
    _, state = model.evaluate(law.vector(params)[None])
    return np.asarray(model.jacobian(state)[0])


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
