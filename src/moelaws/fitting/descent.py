"""Descent of a batch of parameter vectors, each to the optimum below it.

A damped Newton method within box bounds. Far from an optimum its curvature is the majoriser of
iteratively reweighted least squares, which stays positive; near one it is the exact Hessian, which
converges quadratically. The damping is Levenberg's, in the model's own metric: of a sum of power
laws, how much a step changes the logarithms of the terms. So ln b and beta move freely along the
valley in which b / D^beta stays the same, and the parameters of a term that has vanished, which
Marquardt's damping would let run away, stay where they are.

Arrays: B vectors, P parameters; all parameters on the working scale.
"""

from __future__ import annotations

import numpy as np

from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array, Mask

MAX_STEP = 10.0  # of any parameter in one step


def descend(
    objective: Objective, starts: Array, bounds: Array, iterations: int = 500
) -> tuple[Array, Array]:
    """Returns the ends (B, P) and objectives (B,) of a descent from each of ``starts`` (B, P).

    A start stops after three steps in a row that each gained less than 1e-9 of the objective, or
    when no step helps. ``bounds`` is (P, 2), or (B, P, 2) with each vector's own.
    """
    bounds_BP2 = np.broadcast_to(bounds, (*starts.shape, 2))
    low, high = bounds_BP2[..., 0], bounds_BP2[..., 1]
    end = np.clip(starts, low, high)
    value = objective.value(end)
    B = len(end)
    damping = np.full(B, 1e-2)
    exact = np.zeros(B, dtype=bool)
    idle = np.zeros(B, dtype=int)
    alive = np.arange(B)
    metric = objective.model.metric
    for _ in range(iterations):
        if not len(alive):
            break
        here = objective.take(alive)
        theta = end[alive]
        f, gradient, curvature, scale = here.derivatives(theta, exact[alive])
        free = ~held(theta, gradient, bounds_BP2[alive])
        step = _step(curvature, gradient, free, 2 * damping[alive] * scale, metric)
        trial = np.clip(theta + step, low[alive], high[alive])
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


def held(theta: Array, gradient: Array, bounds: Array) -> Mask:
    """Returns which parameters are at a bound that the descent pushes against."""
    at_bound: Mask = ((theta <= bounds[..., 0]) & (gradient > 0)) | (
        (theta >= bounds[..., 1]) & (gradient < 0)
    )
    return at_bound


def _step(curvature: Array, gradient: Array, free: Mask, damping: Array, metric: Array) -> Array:
    """Damped Newton steps (B, P) of the free parameters, none longer than ``MAX_STEP``."""
    P = gradient.shape[1]
    A = curvature + damping[:, None, None] * metric
    A *= free[:, :, None] & free[:, None, :]
    slight = 1e-9 * damping[:, None] * np.diag(metric)  # the metric may be singular
    A[:, range(P), range(P)] += slight + ~free + np.finfo(float).tiny
    downhill = -(gradient * free)[..., None]
    try:
        step = np.linalg.solve(A, downhill)[..., 0]
    except np.linalg.LinAlgError:  # two columns that are the same, and next to no noise
        step = (np.linalg.pinv(A, hermitian=True) @ downhill)[..., 0]
    longest = np.abs(step).max(axis=1, keepdims=True)
    shortened: Array = step * (MAX_STEP / np.maximum(longest, MAX_STEP))
    return shortened
