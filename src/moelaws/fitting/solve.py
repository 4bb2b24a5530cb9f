"""The optimum of a problem: multistart, then on to the protocol's own objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moelaws.fitting.cores import each, shared
from moelaws.fitting.descent import descend
from moelaws.fitting.diagnostics import Search
from moelaws.fitting.likelihood import sigma_huber
from moelaws.fitting.multistart import Optimum, Progress, batches, far_apart, multistart
from moelaws.fitting.objective import Objective
from moelaws.fitting.polish import certify, polish
from moelaws.fitting.problem import Problem
from moelaws.laws.base import Array

ITERATIONS = 2000


@dataclass(frozen=True)
class Solution(Optimum):
    """Where a fit ended, by the protocol's own objective.

    Attributes:
        path: objectives that lead to the optimum from near it; the last has its minimum there.
        sigma: scale of the residuals, for ``huber_scale``; else None.
    """

    path: list[Objective]
    sigma: float | None


def solve(problem: Problem, seed: int, progress: Progress = lambda done, total: None) -> Solution:
    """Minimises the problem's objective from all of its starts."""
    path = problem.path()
    first = multistart(path[0], problem.starts, problem.bounds, seed, progress)
    if len(path) == 1:
        return Solution(**vars(first), path=path, sigma=None)
    ends = follow(path[1:], first.ends, problem.bounds)
    if problem.protocol.objective == "absolute":
        return _ended(path, ends, path[-1].value(ends), first.search, problem, None)
    return _scaled(path, ends, first.search, problem)


def follow(path: list[Objective], phi_BP: Array, bounds: Array) -> Array:
    """Follows the minima of the objectives of ``path`` to those of the last; (B, P).

    Most vectors arrive within fifty steps. The last few in a flat valley take a thousand, and
    without them a bootstrap's intervals are too narrow just where a parameter is badly held.
    """
    bounds_BP2 = np.broadcast_to(bounds, (*phi_BP.shape, 2))
    ends = shared(phi_BP.shape)

    def work(batch: slice) -> None:
        phi = phi_BP[batch]
        for objective in path:
            own = objective.take(np.arange(batch.start, batch.stop))
            phi, _ = descend(own, phi, bounds_BP2[batch], ITERATIONS)
        ends[batch] = phi

    of_vectors = batches(len(phi_BP), path[0].model.n)
    each(work, of_vectors, len(of_vectors))
    return ends


def _scaled(path: list[Objective], ends: Array, search: Search, problem: Problem) -> Solution:
    """The Huber likelihood's optimum: the threshold is delta sigma, and sigma follows the fit."""
    delta = problem.protocol.delta
    values, sigmas = np.empty(len(ends)), np.empty(len(ends))
    for k, end in enumerate(ends):
        for _ in range(5):
            values[k], sigmas[k] = _likelihood(path[-1], end, delta)
            target = path[-1].at(delta * sigmas[k], 1 / (delta * sigmas[k]))
            end = follow([target], end[None], problem.bounds)[0]
        ends[k] = end
    sigma = float(sigmas[np.argmin(values)])
    target = path[-1].at(delta * sigma, sigma**-2)
    return _ended([*path, target], ends, values, search, problem, sigma)


def _likelihood(objective: Objective, phi: Array, delta: float) -> tuple[float, float]:
    return sigma_huber(objective.residual(phi[None])[0], delta, objective.weights[0])


def _ended(
    path: list[Objective],
    ends: Array,
    values: Array,
    search: Search,
    problem: Problem,
    sigma: float | None,
) -> Solution:
    ends, values = far_apart(ends, values)  # several may have come to one place on the way
    best = polish(path[-1], ends[0], problem.bounds)
    ends = np.concatenate([best[None], ends[1:]])
    if sigma is None:
        values[0] = path[-1].value(best[None])[0]
    else:
        values[0], sigma = _likelihood(path[-1], best, problem.protocol.delta)
    return Solution(
        phi=best,
        value=float(values[0]),
        certificate=certify(path[-1], best, problem.bounds),
        search=search,
        ends=ends,
        end_values=values,
        path=path,
        sigma=sigma,
    )
