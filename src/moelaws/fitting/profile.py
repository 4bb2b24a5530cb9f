"""Profile likelihood: how far a parameter can be moved when all others make up for it.

It rests on the Huber likelihood with a fitted scale (``fitting.likelihood``), whatever the fit's
own objective: its optimum is near the fit's and not the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.stats import chi2

from moelaws.fitting.diagnostics import ProfileInterval
from moelaws.fitting.intervals import delta_method
from moelaws.fitting.likelihood import sigma_huber
from moelaws.fitting.objective import Objective
from moelaws.fitting.problem import Problem, problem
from moelaws.fitting.solve import Solution, follow
from moelaws.laws.base import Array
from moelaws.laws.forms import LinearLaw
from moelaws.spec.fit import Fit

POINTS = 16  # on each side of the optimum
DELTA = 1e-3  # of the likelihood, in units of its scale


def profile(
    fitted: Problem, solution: Solution, spec: Fit, progress: Callable[[str, int, int], None]
) -> dict[str, ProfileInterval]:
    """Returns the interval of each parameter of ``spec.profile``.

    An end is None where the likelihood does not fall far enough before the bound or within twenty
    standard errors.
    """
    law, theta = fitted.law, fitted.working(solution.phi)
    likelihood = dataclasses.replace(fitted.protocol, objective="huber_scale", sample=1)
    profiles = {}
    for done, name in enumerate(spec.profile):
        progress("profile", done, len(spec.profile))
        place = law.names.index(name)
        task = problem(law, fitted.rows, likelihood, fitted.seed, last=place)
        profiles[name] = _one(task, place, theta, solution, spec.level)
    if spec.profile:
        progress("profile", len(spec.profile), len(spec.profile))
    return profiles


def _one(
    task: Problem, place: int, theta: Array, solution: Solution, level: float
) -> ProfileInterval:
    law, path = task.law, task.path()
    linear = isinstance(law, LinearLaw)
    axis = len(theta) - 1 if linear else place
    starts = task.coordinates(theta)[None] if linear else solution.ends
    centre = follow(path, starts, task.bounds)
    best = centre[np.argmin([_nll(task, phi) for phi in centre])]
    least = _nll(task, best)
    step = _standard_error(task, path[-1], best, axis)
    drop = 0.5 * float(chi2.ppf(level, 1))
    curve, ends = [(best, least)], []

    def natural(phi: Array) -> float:
        return float(law.natural(task.working(phi))[place])

    for sign in (-1.0, 1.0):
        edge, points = None, []
        for reach in (3.0, 20.0):
            last = np.clip(best[axis] + sign * reach * step, *task.bounds[axis])
            values = np.linspace(best[axis], last, POINTS + 1)[1:]
            points = _along(task, path, centre, axis, values)
            rises = np.array([nll - least for _, nll in points])
            if (rises > drop).any():
                edge = _crossing(float(best[axis]), values, rises, drop)
                break
        along = np.arange(len(best)) == axis
        ends.append(None if edge is None else natural(best + (edge - best[axis]) * along))
        curve += points
    curve.sort(key=lambda point: float(point[0][axis]))
    if natural(curve[0][0]) > natural(curve[-1][0]):  # a coordinate that runs the other way
        ends.reverse()
    return ProfileInterval(
        estimate=natural(best),
        low=ends[0],
        high=ends[1],
        curve=[[natural(phi), nll] for phi, nll in curve],
    )


def _along(
    task: Problem, path: list[Objective], centre: Array, axis: int, values: Array
) -> list[tuple[Array, float]]:
    """The likelihood's optimum with the coordinate ``axis`` held at each of ``values`` (K,)."""
    starts = np.repeat(centre[None], len(values), axis=0)  # (K, ends, P)
    starts[:, :, axis] = values[:, None]
    starts = starts.reshape(-1, centre.shape[1])
    bounds = np.broadcast_to(task.bounds, (*starts.shape, 2)).copy()
    bounds[:, axis] = starts[:, axis, None]
    ends = follow(path, starts, bounds)
    nll = np.array([_nll(task, phi) for phi in ends]).reshape(len(values), len(centre))
    ends = ends.reshape(len(values), len(centre), -1)
    return [(ends[k, i], float(nll[k, i])) for k, i in enumerate(nll.argmin(axis=1))]


def _crossing(centre: float, values: Array, rises: Array, drop: float) -> float:
    """Where the likelihood has fallen by ``drop``, between the points that bracket it.

    The square root of the fall is close to linear in the parameter, so that one is interpolated.
    """
    k = int(np.argmax(rises > drop))
    inner, x = (0.0, centre) if k == 0 else (max(rises[k - 1], 0.0), float(values[k - 1]))
    share = (np.sqrt(drop) - np.sqrt(inner)) / (np.sqrt(rises[k]) - np.sqrt(inner))
    return x + float(share) * (float(values[k]) - x)


def _nll(task: Problem, phi: Array) -> float:
    residual = task.model.evaluate(phi[None])[0][0] - task.observed
    return sigma_huber(residual, DELTA, task.rows.weights)[0]


def _standard_error(task: Problem, objective: Objective, phi: Array, axis: int) -> float:
    covariance = delta_method(task, objective, phi, np.zeros(len(phi), dtype=bool))
    variance = 0.0 if covariance is None else float(covariance[axis, axis])
    return float(np.sqrt(variance)) or 0.1 * max(abs(float(phi[axis])), 1.0)
