"""Multistart: many starts descend as one batch, the best is polished and certified.

The descent is a damped Newton method within box bounds. Far from an optimum its curvature is the
majoriser of iteratively reweighted least squares, which stays positive; near one it is the exact
Hessian, which converges quadratically. The damping is Levenberg's (one scale for all parameters):
Marquardt's would let the parameters of a term that has vanished run away.

Arrays: B starts, n rows, P parameters; all parameters on the working scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from moelaws.fitting.objective import HuberSum
from moelaws.laws.base import Array, Law, Mask, Protocol

BATCH = 125  # starts a batch: larger ones gain nothing and leave the processor's cache
REACHED = 1e-3  # a start has reached the optimum when its objective is this close, relatively
NEARLY = 1.5  # the objective of another basin that resampled rows may prefer, relatively
EXACT = np.array([True])
MAX_STEP = 10.0  # of any parameter in one step, working scale


@dataclass(frozen=True)
class Optimum:
    """Where a multistart ended.

    Attributes:
        theta: (P,) working scale.
        objective: at theta.
        converged: theta is certified stationary: see :func:`certify`.
        decrease: what a Newton step would still gain, relative to the objective.
        condition: condition number of the Hessian scaled to a unit diagonal, free parameters.
        at_bound: (P,) whether the parameter is held by its bound.
        n_starts: starts that were run.
        n_reached: starts that ended within a thousandth of the optimum's objective.
        basins: (K, P) theta and a few ends far from it that are nearly as good: where refits to
            other rows may find their optimum.
    """

    theta: Array
    objective: float
    converged: bool
    decrease: float
    condition: float
    at_bound: Mask
    n_starts: int
    n_reached: int
    basins: Array


def sample_starts(law: Law, protocol: Protocol, seed: int) -> Array:
    """A seeded sample of the protocol's grid without repetition, or all of it; (B, P)."""
    shape = tuple(len(protocol.grid[name]) for name in law.names)
    count = min(protocol.sample, protocol.n_starts)
    chosen = np.random.default_rng(seed).choice(protocol.n_starts, count, replace=False)
    index = np.unravel_index(np.sort(chosen), shape)
    return np.stack(
        [np.asarray(protocol.grid[name])[i] for name, i in zip(law.names, index, strict=True)],
        axis=1,
    )


def multistart(
    objective: HuberSum,
    starts: Array,
    bounds: Array,
    progress: Callable[[int], None] = lambda done: None,
) -> Optimum:
    """The best optimum that ``starts`` (B, P) lead to, within ``bounds`` (P, 2).

    ``progress`` is called with the number of starts done.
    """
    ends, values = [], []
    for first in range(0, len(starts), BATCH):
        theta, value = descend(objective, starts[first : first + BATCH], bounds)
        ends.append(theta)
        values.append(value)
        progress(min(first + BATCH, len(starts)))
    theta_BP, value_B = np.concatenate(ends), np.concatenate(values)
    theta = polish(objective, theta_BP[np.argmin(value_B)], bounds)
    best = float(objective.value(theta[None])[0])
    converged, decrease, condition, at_bound = certify(objective, theta, bounds)
    reached = int((value_B <= best * (1 + REACHED) + 1e-15).sum())
    return Optimum(
        theta=theta,
        objective=best,
        converged=converged,
        decrease=decrease,
        condition=condition,
        at_bound=at_bound,
        n_starts=len(starts),
        n_reached=max(reached, 1),
        basins=_spread(theta, theta_BP[value_B <= best * NEARLY]),
    )


def _spread(theta: Array, others: Array, count: int = 5) -> Array:
    """``theta`` and up to ``count - 1`` of ``others``, each the farthest from those chosen."""
    chosen = [theta]
    while len(chosen) < count and len(others):
        distance = np.abs(others[:, None] - np.array(chosen)[None]).max(axis=2).min(axis=1)
        if distance.max() < 1.0:  # a factor e of a coefficient
            break
        chosen.append(others[np.argmax(distance)])
    return np.array(chosen)


def descend(
    objective: HuberSum, starts: Array, bounds: Array, iterations: int = 500
) -> tuple[Array, Array]:
    """Ends (B, P) and objectives (B,) of a descent from each start.

    A start stops after three steps in a row that each gained less than 1e-9 of the objective, or
    when no step helps.
    """
    low, high = bounds.T
    end = np.clip(starts, low, high)
    value = objective.value(end)
    B = len(end)
    damping = np.full(B, 1e-2)
    exact = np.zeros(B, dtype=bool)
    idle = np.zeros(B, dtype=int)
    alive = np.arange(B)
    for _ in range(iterations):
        if not len(alive):
            break
        here = objective.take(alive)
        theta = end[alive]
        f, gradient, curvature, scale = here.derivatives(theta, exact[alive])
        free = ~_held(theta, gradient, bounds)
        step = _step(curvature, gradient, free, 2 * damping[alive] * scale)
        trial = np.clip(theta + step, low, high)
        f_trial = here.value(trial)

        better = f_trial < f
        gain = np.where(better, f - f_trial, 0.0)
        end[alive[better]], value[alive[better]] = trial[better], f_trial[better]
        before = damping[alive]
        exact[alive] = np.where(better, gain < 1e-3 * f, exact[alive] & (before < 1.0))
        idle[alive] = np.where(better, np.where(gain < 1e-9 * f, idle[alive] + 1, 0), idle[alive])
        damping[alive] = np.where(better, np.maximum(before / 5, 1e-10), before * 4)
        alive = alive[(idle[alive] < 3) & (before < 1e10) & (f > 0)]
    return end, value


def _held(theta: Array, gradient: Array, bounds: Array) -> Mask:
    """Parameters at a bound that the descent pushes against."""
    held: Mask = ((theta <= bounds[:, 0]) & (gradient > 0)) | (
        (theta >= bounds[:, 1]) & (gradient < 0)
    )
    return held


def _step(curvature: Array, gradient: Array, free: Mask, damping: Array) -> Array:
    """Damped Newton steps (B, P) of the free parameters, none longer than ``MAX_STEP``."""
    P = gradient.shape[1]
    A = curvature * free[:, :, None] * free[:, None, :]
    tiny = np.finfo(float).tiny
    A[:, range(P), range(P)] += damping[:, None] * (1 + 1e-9) + ~free + tiny
    step = np.linalg.solve(A, -(gradient * free)[..., None])[..., 0]
    longest = np.maximum(np.abs(step).max(axis=1, keepdims=True), tiny)
    shortened: Array = step * np.minimum(1.0, MAX_STEP / longest)
    return shortened


def polish(objective: HuberSum, theta: Array, bounds: Array) -> Array:
    """The stationary point next to ``theta`` (P,), by SciPy: L-BFGS-B, then a trust region.

    The trust region uses the exact Hessian over the parameters that no bound holds.
    """

    def fun(x: Array) -> tuple[float, Array]:
        f, gradient, _, _ = objective.derivatives(x[None], EXACT)
        return float(f[0]), gradient[0]

    # L-BFGS-B stops on absolute changes: an objective near 1e-4 is brought near 1 first.
    unit = max(fun(theta)[0], 1e-12)
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(
        lambda x: tuple(part / unit for part in fun(x)),
        theta,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )
    x = np.clip(found.x, *bounds.T) if found.fun * unit <= fun(theta)[0] else theta
    free = ~_held(x, fun(x)[1], bounds)

    def whole(y: Array) -> Array:
        full = x.copy()
        full[free] = y
        return full

    newton = minimize(
        lambda y: fun(whole(y))[0] / unit,
        x[free],
        jac=lambda y: fun(whole(y))[1][free] / unit,
        hess=lambda y: (
            objective.derivatives(whole(y)[None], EXACT)[2][0][np.ix_(free, free)] / unit
        ),
        method="trust-exact",
        options={"gtol": 1e-10, "maxiter": 500},
    )
    end = np.clip(whole(newton.x), *bounds.T)
    return end if fun(end)[0] <= fun(x)[0] else x


def certify(objective: HuberSum, theta: Array, bounds: Array) -> tuple[bool, float, float, Mask]:
    """Whether ``theta`` (P,) is a stationary point that is no saddle.

    Returns:
        converged: the Hessian has no negative eigenvalue on the free parameters and a Newton step
            would gain less than 1e-6 of the objective.
        decrease: that gain, relative to the objective.
        condition: condition number of the Hessian scaled to a unit diagonal.
        held: (P,) parameters that a bound holds.
    """
    f, gradient, hessian, _ = (part[0] for part in objective.derivatives(theta[None], EXACT))
    held = _held(theta, gradient, bounds)
    free = ~held
    H, g = hessian[np.ix_(free, free)], gradient[free]
    diagonal = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    eigenvalues, vectors = np.linalg.eigh(H / np.outer(diagonal, diagonal))
    floor = 1e-13 * eigenvalues[-1]
    along = vectors.T @ (g / diagonal)
    gain = 0.5 * float((along**2 / np.maximum(np.abs(eigenvalues), floor)).sum())
    # A perfect fit has objective 0: one hundred-millionth of delta per row is as good as that.
    reference = max(float(f), 0.5 * objective.design.n * (1e-8 * objective.delta) ** 2)
    decrease = gain / reference
    converged = bool(eigenvalues[0] > -1e-9 * eigenvalues[-1] and decrease < 1e-6)
    condition = float(eigenvalues[-1] / max(abs(eigenvalues[0]), np.finfo(float).tiny))
    return converged, decrease, condition, held
