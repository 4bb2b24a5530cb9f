"""A fit the common way: SciPy's L-BFGS-B from one start after another, with the exact gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize

from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array

# SciPy's own tolerances stop on absolute changes, far from the optimum of an objective near 3e-4:
# for its ends to be optima the objective is divided by its size and the tolerances are narrowed.
TIGHT: Mapping[str, float] = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000}

Function = Callable[[Array], tuple[float, Array]]


def value_and_gradient(objective: Objective, unit: float = 1.0) -> Function:
    """The objective and its exact gradient at one vector (P,), both divided by ``unit``.

    Without the curvature that the engine wants: what L-BFGS-B needs and no more.
    """
    model, observed, delta = objective.model, objective.observed, objective.delta
    weights = objective.weights[0] * objective.unit / unit

    def function(x: Array) -> tuple[float, Array]:
        prediction, state = model.evaluate(x[None])
        residual = prediction[0] - observed
        psi = np.clip(residual, -delta, delta)
        loss = float((weights * psi * (residual - 0.5 * psi)).sum())
        return loss, model.jacobian(state)[0] @ (weights * psi)

    return function


def descend_from(
    function: Function, start: Array, bounds: Array, options: Mapping[str, Any] = {}
) -> Array:
    """Where L-BFGS-B ends, from ``start`` (P,) within ``bounds`` (P, 2)."""
    end: Array = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=dict(options)
    ).x
    return end
