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

from moelaws.fitting.objective import Evaluation, Objective, Slopes
from moelaws.laws.base import Array, Mask

MAX_STEP = 10.0  # of any parameter in one step


def descend(
    objective: Objective, starts: Array, bounds: Array, iterations: int = 500
) -> tuple[Array, Array]:
    """Returns the ends (B, P) and objectives (B,) of a descent from each of ``starts`` (B, P).

    A start stops after three steps in a row that each gained less than 1e-9 of the objective, or
    when no step helps. ``bounds`` is (P, 2), or (B, P, 2) with each vector's own.
    """
    bounds = np.broadcast_to(bounds, (*starts.shape, 2))
    here, metric = objective, objective.model.metric
    point = here.evaluate(np.clip(starts, bounds[..., 0], bounds[..., 1]))
    end, value = np.empty_like(point.theta), np.empty_like(point.value)
    alive = np.arange(len(end))
    damping = np.full(len(end), 1e-2)
    exact = np.zeros(len(end), dtype=bool)
    idle = np.zeros(len(end), dtype=int)
    slopes, stale = here.derivatives(point, exact), np.zeros(len(end), dtype=bool)
    for _ in range(iterations):
        if not len(alive):
            break
        slopes = _renewed(slopes, stale, here, point, exact)
        f, gradient, curvature, scale = slopes
        free = ~held(point.theta, gradient, bounds)
        step = _step(curvature, gradient, free, 2 * damping * scale, metric)
        trial = here.evaluate(np.clip(point.theta + step, bounds[..., 0], bounds[..., 1]))

        better, was_exact = trial.value < f, exact
        gain = np.where(better, f - trial.value, 0.0)
        exact = np.where(better, gain < 1e-3 * f, exact & (damping < 1.0))
        idle = np.where(better, np.where(gain < 1e-9 * f, idle + 1, 0), idle)
        going = np.flatnonzero((idle < 3) & (damping < 1e10) & (f > 0))
        damping = np.where(better, np.maximum(damping / 5, 1e-10), damping * 4)
        stale = better | (exact != was_exact)
        point = point.moved(trial, better)
        if len(going) < len(alive):
            end[alive], value[alive] = point.theta, point.value
            point, here, bounds = point.take(going), here.take(going), bounds[going]
            alive, slopes, stale = alive[going], slopes.take(going), stale[going]
            damping, exact, idle = damping[going], exact[going], idle[going]
    end[alive], value[alive] = point.theta, point.value
    return end, value


def _renewed(
    slopes: Slopes, stale: Mask, here: Objective, point: Evaluation, exact: Mask
) -> Slopes:
    """The derivatives at ``point``, which still hold where a step was refused."""
    if not stale.any():
        return slopes
    if stale.all():
        return here.derivatives(point, exact)
    index = np.flatnonzero(stale)
    some = here.take(index).derivatives(point.take(index), exact[index])
    for array, own in zip(slopes, some, strict=True):
        array[index] = own
    return slopes


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
    if not free.all():
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
