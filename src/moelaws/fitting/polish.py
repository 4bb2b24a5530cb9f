"""The stationary point next to a descent's end, by SciPy, and the certificate that it is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from moelaws.fitting.descent import descend, held
from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array, Mask

EXACT = np.array([True])
ARRIVED = 1e-9  # what another Newton step would gain, relatively, where one need go no further


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
    """Finds the stationary point next to ``theta`` (P,): by a trust region, or L-BFGS-B before it.

    A descent's end is mostly so near that the trust region arrives in a few steps. Where it does
    not, L-BFGS-B goes ahead: it takes thousands of steps along a flat valley.
    """
    end = _trust_region(objective, theta, bounds)
    certificate = certify(objective, end, bounds)
    if certificate.converged and certificate.decrease < ARRIVED:
        return _sharpened(objective, end, bounds)
    other = _trust_region(objective, _quasi_newton(objective, theta, bounds), bounds)
    ends = np.array([end, other])
    return np.asarray(ends[np.argmin(objective.value(ends))])


def _quasi_newton(objective: Objective, theta: Array, bounds: Array) -> Array:
    """Where L-BFGS-B ends, or ``theta`` if that is no lower."""
    # It stops on absolute changes: an objective near 1e-4 is brought near 1 first.
    unit = _unit(objective, theta)

    def fun(x: Array) -> tuple[float, Array]:
        f, gradient = _slope(objective, x)
        return f / unit, gradient / unit

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-10}
    nearby = minimize(fun, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.clip(nearby.x, *bounds.T) if nearby.fun <= fun(theta)[0] else theta


def _trust_region(objective: Objective, x: Array, bounds: Array) -> Array:
    """Where a trust region with the exact Hessian ends, over the parameters that no bound holds.

    It knows no bounds: where its way leads into one, a last descent walks along it.
    """
    unit = _unit(objective, x)
    free = ~held(x, _slope(objective, x)[1], bounds)
    if not free.any():
        return x

    def whole(y: Array) -> Array:
        full = x.copy()
        full[free] = y
        return full

    # A step beyond the bounds may leave where the law has a value: it is refused as any that is
    # too long, for which SciPy wants numbers all the same.
    def value(y: Array) -> float:
        f = float(objective.value(whole(y)[None])[0]) / unit
        return f if np.isfinite(f) else float("inf")

    def curvature(y: Array) -> Array:
        H = objective.derivatives(whole(y)[None], EXACT)[2][0][np.ix_(free, free)] / unit
        return np.where(np.isfinite(H), H, 0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        newton = minimize(
            value,
            x[free],
            jac=lambda y: np.nan_to_num(_slope(objective, whole(y))[1][free] / unit),
            hess=curvature,
            method="trust-exact",
            options={"gtol": 1e-10, "maxiter": 500},
        )
    end = np.clip(whole(newton.x), *bounds.T)
    ends, values = descend(objective, np.array([end, x]), bounds)
    return np.asarray(ends[np.argmin(values)])


def _sharpened(objective: Objective, x: Array, bounds: Array) -> Array:
    """A Newton step further, where values are equal and the gradient alone still tells."""
    f, gradient, hessian, _ = (array[0] for array in objective.derivatives(x[None], EXACT))
    free = ~held(x, gradient, bounds)
    y = x.copy()
    y[free] -= np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True) @ gradient[free]
    y = np.clip(y, *bounds.T)
    value, slope = _slope(objective, y)
    nearer = np.abs(slope[free]).sum() < np.abs(gradient[free]).sum()
    return y if nearer and value <= f * (1 + 1e-14) else x


def _slope(objective: Objective, x: Array) -> tuple[float, Array]:
    f, gradient, _, _ = objective.derivatives(x[None], ~EXACT)  # no Hessian, which is dear
    return float(f[0]), gradient[0]


def _unit(objective: Objective, x: Array) -> float:
    return max(float(objective.value(x[None])[0]), 1e-12)


def normalised(hessian: Array) -> tuple[Array, Array]:
    """Returns the Hessian (P, P) over the roots of its diagonal, and these roots (P,).

    At a minimum its elements are within 1. Beside a diagonal element that vanishes they have no
    bound, and no eigenvalues could be computed of them: they are cut at 1e8.
    """
    diagonal = np.sqrt(np.maximum(np.abs(np.diag(hessian)), np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        return np.clip(hessian / np.outer(diagonal, diagonal), -1e8, 1e8), diagonal


def certify(objective: Objective, theta: Array, bounds: Array) -> Certificate:
    """Tells whether ``theta`` (P,) is a stationary point that is no saddle."""
    f, gradient, hessian, _ = (array[0] for array in objective.derivatives(theta[None], EXACT))
    at_bound = held(theta, gradient, bounds)
    free = ~at_bound
    if not free.any():
        return Certificate(True, 0.0, 1.0, at_bound)
    H, g = hessian[np.ix_(free, free)], gradient[free]
    g = np.where(np.abs(g) <= 1e-13 * objective.pull(theta)[free], 0.0, g)  # it has cancelled out
    scaled, diagonal = normalised(H)
    eigenvalues, vectors = np.linalg.eigh(scaled)
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
