"""The stationary point next to a descent's end, by SciPy, and the certificate that it is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from moelaws.fitting.descent import descend, held
from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array, Mask

EXACT = np.array([True])


@dataclass(frozen=True)
class Certificate:
    """What is known of a point that claims to be an optimum.

    Attributes:
        converged: the Hessian has no negative eigenvalue on the free parameters and a Newton step
            would gain less than 1e-6 of the objective.
        decrease: that gain, relative to the objective.
        condition: condition number of the Hessian scaled to a unit diagonal, free parameters.
        at_bound: (P,) parameters that a bound holds.
    """

    converged: bool
    decrease: float
    condition: float
    at_bound: Mask


def polish(objective: Objective, theta: Array, bounds: Array) -> Array:
    """Finds the stationary point next to ``theta`` (P,): L-BFGS-B, then a trust region.

    The trust region uses the exact Hessian over the parameters that no bound holds. It knows no
    bounds: where its way leads into one, a last descent walks along it.
    """

    def fun(x: Array) -> tuple[float, Array]:
        f, gradient, _, _ = objective.derivatives(x[None], ~EXACT)  # no Hessian, which is dear
        return float(f[0]), gradient[0]

    # L-BFGS-B stops on absolute changes: an objective near 1e-4 is brought near 1 first.
    unit = max(fun(theta)[0], 1e-12)
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-10}
    nearby = minimize(
        lambda x: tuple(value / unit for value in fun(x)),
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )
    x = np.clip(nearby.x, *bounds.T) if nearby.fun * unit <= fun(theta)[0] else theta
    free = ~held(x, fun(x)[1], bounds)
    if not free.any():
        return x

    def whole(y: Array) -> Array:
        full = x.copy()
        full[free] = y
        return full

    # A step beyond the bounds may leave where the law has a value: it is refused as any that is
    # too long, for which SciPy wants numbers all the same.
    def value(y: Array) -> float:
        f = fun(whole(y))[0] / unit
        return f if np.isfinite(f) else float("inf")

    def curvature(y: Array) -> Array:
        H = objective.derivatives(whole(y)[None], EXACT)[2][0][np.ix_(free, free)] / unit
        return np.where(np.isfinite(H), H, 0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        newton = minimize(
            value,
            x[free],
            jac=lambda y: np.nan_to_num(fun(whole(y))[1][free] / unit),
            hess=curvature,
            method="trust-exact",
            options={"gtol": 1e-10, "maxiter": 500},
        )
    end = np.clip(whole(newton.x), *bounds.T)
    ends, values = descend(objective, np.array([end, x]), bounds)
    return np.asarray(ends[np.argmin(values)])


def certify(objective: Objective, theta: Array, bounds: Array) -> Certificate:
    """Tells whether ``theta`` (P,) is a stationary point that is no saddle."""
    f, gradient, hessian, _ = (array[0] for array in objective.derivatives(theta[None], EXACT))
    at_bound = held(theta, gradient, bounds)
    free = ~at_bound
    if not free.any():
        return Certificate(True, 0.0, 1.0, at_bound)
    H, g = hessian[np.ix_(free, free)], gradient[free]
    g = np.where(np.abs(g) <= 1e-13 * objective.pull(theta)[free], 0.0, g)  # it has cancelled out
    diagonal = np.sqrt(np.maximum(np.abs(np.diag(H)), np.finfo(float).tiny))
    eigenvalues, vectors = np.linalg.eigh(H / np.outer(diagonal, diagonal))
    floor = max(1e-13 * eigenvalues[-1], np.finfo(float).tiny)  # absolute values may be flat
    along = vectors.T @ (g / diagonal)
    gain = 0.5 * float((along**2 / np.maximum(np.abs(eigenvalues), floor)).sum())
    # A perfect fit has objective 0: a residual of 1e-11 in every row is as good as that, or of
    # 1e-11 of responses that are larger than 1.
    slight = 1e-11 * max(1.0, float(np.abs(objective.observed).max()))
    tiny = objective.unit * objective.model.n * slight * min(objective.delta, slight)
    decrease = gain / max(float(f), tiny)
    return Certificate(
        converged=bool(eigenvalues[0] >= -1e-9 * eigenvalues[-1] and decrease < 1e-6),
        decrease=decrease,
        condition=float(eigenvalues[-1] / max(abs(eigenvalues[0]), np.finfo(float).tiny)),
        at_bound=at_bound,
    )
