"""A law over a table's rows as the engine minimises it, and the optimum that it comes to.

A sum of power laws and a general law keep their working-scale parameters. The powers of ln N in a
linear law are nearly collinear as they stand: its coordinates are those of an orthonormal design.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from moelaws.fitting.cores import each
from moelaws.fitting.descent import certify, descend, polish
from moelaws.fitting.goodness import sigma_huber
from moelaws.fitting.multistart import Optimum, Progress, batches, far_apart, multistart, starts_of
from moelaws.fitting.objective import Objective
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Model
from moelaws.laws.forms import LinearLaw, LinearModel

# Thresholds of the non-smooth objectives, each met by way of the larger ones before it.
LARGEST_DELTA = 1e-3
SMALLEST_DELTA = 1e-8
DELTA_RATIO = 3.0
ITERATIONS = 2000  # of each descent along a path


@dataclass(frozen=True)
class Problem:
    """What a fit minimises."""

    law: FittableLaw
    rows: Observations
    model: Model  # over the rows, in coordinates
    observed: Array  # (n,) response on the law's scale
    protocol: FitProtocol
    seed: int  # of a sample of the starts
    bounds: Array  # (P, 2) of the coordinates
    starts: Array  # (B, P) coordinates
    working: Callable[[Array], Array]  # coordinates (..., P) to working-scale parameters
    coordinates: Callable[[Array], Array]  # the reverse

    def path(self) -> list[Objective]:
        """Returns the objectives on the way to the protocol's own, the last: smoother ones first.

        For ``huber_scale`` that is the sum of absolute values; the scale is estimated afterwards.
        """
        kind = self.protocol.objective
        if kind == "huber":
            return [self._objective(self.protocol.delta, 1.0)]
        if kind == "squared":
            return [self._objective(np.inf, 2.0)]
        count = round(np.log(LARGEST_DELTA / SMALLEST_DELTA) / np.log(DELTA_RATIO)) + 1
        relative = np.geomspace(LARGEST_DELTA, SMALLEST_DELTA, count)
        deltas = _spread(self.law, self.observed) * relative
        return [self._objective(delta, 1 / delta) for delta in deltas.tolist()]

    def _objective(self, delta: float, unit: float) -> Objective:
        return Objective(self.model, self.observed, delta, self.rows.weights, unit)


def problem(
    law: FittableLaw, rows: Observations, protocol: FitProtocol, seed: int, last: int | None = None
) -> Problem:
    """Returns the problem of fitting ``law`` to ``rows``.

    ``last`` is the place of a linear law's parameter that is to be the last coordinate but for a
    factor, so that bounds can hold it.
    """
    observed = law.on_scale(rows.response)
    if not isinstance(law, LinearLaw):
        starts = starts_of(law, protocol, seed)
        model = law.model(rows.columns)
        return Problem(law, rows, model, observed, protocol, seed, law.bounds, starts, _same, _same)
    X = law.design(rows.columns)
    P = X.shape[1]
    order = [i for i in range(P) if i != last] + ([] if last is None else [last])
    Q, R = np.linalg.qr(X[:, order])
    back = np.argsort(order)
    scale = np.sqrt(len(X)) * _spread(law, observed)

    def working(phi: Array) -> Array:
        solved = np.linalg.solve(R, np.atleast_2d(phi).T * scale).T[:, back]
        return np.asarray(solved.reshape(phi.shape))

    def coordinates(theta: Array) -> Array:
        return np.asarray(np.atleast_2d(theta)[:, order] @ R.T / scale).reshape(theta.shape)

    free = np.tile([-np.inf, np.inf], (P, 1))
    start, model = (Q.T @ observed / scale)[None], LinearModel(Q * scale)
    return Problem(law, rows, model, observed, protocol, seed, free, start, working, coordinates)


def _spread(law: FittableLaw, observed: Array) -> float:
    """The unit of steps and thresholds: a response that is no logarithm may be in any."""
    return 1.0 if law.log_response else float(observed.std()) or 1.0


def _same(theta: Array) -> Array:
    return theta


@dataclass(frozen=True)
class Solution(Optimum):
    """Where a fit ended, by the protocol's own objective."""

    path: list[Objective]  # to the optimum from near it; the last has its minimum there
    sigma: float | None  # scale of the residuals, for ``huber_scale``


def solve(problem: Problem, seed: int, progress: Progress = lambda done, total: None) -> Solution:
    """Minimises the problem's objective from all of its starts."""
    path, delta, sigma = problem.path(), problem.protocol.delta, None
    first = multistart(path[0], problem.starts, problem.bounds, seed, progress)
    if len(path) == 1:
        return Solution(**vars(first), path=path, sigma=None)
    ends = follow(path[1:], first.ends, problem.bounds)
    if problem.protocol.objective == "absolute":
        values = path[-1].value(ends)
    else:
        values, sigma = _scale(path[-1], ends, problem)
        path.append(path[-1].at(delta * sigma, sigma**-2))
    ends, values = far_apart(ends, values)  # several may have come to one place on the way
    best = ends[0] = polish(path[-1], ends[0], problem.bounds)
    if sigma is None:
        values[0] = path[-1].value(best[None])[0]
    else:
        values[0], sigma = _likelihood(path[-1], best, delta)
    certificate = certify(path[-1], best, problem.bounds)
    return Solution(
        best, float(values[0]), certificate, first.search, ends, values, path=path, sigma=sigma
    )


def follow(path: list[Objective], phi_BP: Array, bounds: Array) -> Array:
    """Follows the minima of the objectives of ``path`` to those of the last; (B, P).

    Most vectors arrive within fifty steps. The last few in a flat valley take a thousand, and
    without them a bootstrap's intervals are too narrow just where a parameter is badly held.
    """
    bounds_BP2 = np.broadcast_to(bounds, (*phi_BP.shape, 2))

    def work(batch: slice) -> Array:
        phi = phi_BP[batch]
        for objective in path:
            own = objective.take(np.arange(batch.start, batch.stop))
            phi, _ = descend(own, phi, bounds_BP2[batch], ITERATIONS)
        return phi

    slices = batches(len(phi_BP), path[0].model.n)
    return np.concatenate(each(work, slices, len(slices)))


def _scale(objective: Objective, ends: Array, problem: Problem) -> tuple[Array, float]:
    """Moves ``ends`` (K, P) to the Huber likelihood's optima; returns values (K,) and best sigma.

    The threshold is delta sigma, and sigma follows the fit.
    """
    delta = problem.protocol.delta
    values, sigmas = np.empty(len(ends)), np.empty(len(ends))
    for k, end in enumerate(ends):
        for _ in range(5):
            values[k], sigmas[k] = _likelihood(objective, end, delta)
            target = objective.at(delta * sigmas[k], 1 / (delta * sigmas[k]))
            end = follow([target], end[None], problem.bounds)[0]
        ends[k] = end
    return values, float(sigmas[np.argmin(values)])


def _likelihood(objective: Objective, phi: Array, delta: float) -> tuple[float, float]:
    return sigma_huber(objective.residual(phi[None])[0], delta, objective.weights[0])
