"""A law over a table's rows as the engine minimises it: in coordinates that are well conditioned.

A sum of power laws and a general law keep their working-scale parameters. The powers of ln N in a
linear law are nearly collinear as they stand: its coordinates are those of an orthonormal design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from moelaws.fitting.multistart import starts_of
from moelaws.fitting.objective import Objective
from moelaws.fitting.observations import Observations
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Model
from moelaws.laws.forms import LinearLaw, LinearModel

# Thresholds of the non-smooth objectives, each met by way of the larger ones before it.
LARGEST_DELTA = 1e-3
SMALLEST_DELTA = 1e-8
DELTA_RATIO = 3.0


@dataclass(frozen=True)
class Problem:
    """What a fit minimises.

    Attributes:
        law: the law.
        rows: what it is fitted to.
        model: its model over the rows, in coordinates.
        observed: (n,) response on the law's scale.
        protocol: objective and starts.
        seed: of a sample of the starts.
        bounds: (P, 2) of the coordinates.
        starts: (B, P) coordinates.
        working: coordinates (..., P) to working-scale parameters.
        coordinates: the reverse.
    """

    law: FittableLaw
    rows: Observations
    model: Model
    observed: Array
    protocol: FitProtocol
    seed: int
    bounds: Array
    starts: Array
    working: Callable[[Array], Array]
    coordinates: Callable[[Array], Array]

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

    ``last`` is the place of a parameter that is to be the last coordinate but for a factor, so that
    bounds can hold it; all parameters are where the law is not linear.
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
