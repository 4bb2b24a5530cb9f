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
from moelaws.laws.base import Array, Columns, FitProtocol, FittableLaw, Model
from moelaws.laws.kinds import LinearLaw, LinearModel

# Thresholds of the non-smooth objectives, each met by way of the larger ones before it.
SMOOTH = 1e-3
LEAST = 1e-8
SHRINK = 3.0


@dataclass(frozen=True)
class Problem:
    """What a fit minimises.

    Attributes:
        law: the law.
        model: its model over the rows, in coordinates.
        observed: (n,) response on the law's scale.
        weights: (n,) with mean 1, or None.
        protocol: objective and starts.
        bounds: (P, 2) of the coordinates.
        starts: (B, P) coordinates.
        working: coordinates (..., P) to working-scale parameters.
        coordinates: the reverse.
    """

    law: FittableLaw
    model: Model
    observed: Array
    weights: Array | None
    protocol: FitProtocol
    bounds: Array
    starts: Array
    working: Callable[[Array], Array]
    coordinates: Callable[[Array], Array]

    def path(self) -> list[Objective]:
        """Objectives to follow to the protocol's own, which is the last: smoother ones first.

        For ``huber_scale`` that is the sum of absolute values; the scale is estimated afterwards.
        """
        kind = self.protocol.objective
        if kind == "huber":
            return [self._objective(self.protocol.delta, 1.0)]
        if kind == "squared":
            return [self._objective(np.inf, 2.0)]
        count = round(np.log(SMOOTH / LEAST) / np.log(SHRINK)) + 1
        deltas = _spread(self.law, self.observed) * np.geomspace(SMOOTH, LEAST, count)
        return [self._objective(delta, 1 / delta) for delta in deltas.tolist()]

    def _objective(self, delta: float, unit: float) -> Objective:
        return Objective(self.model, self.observed, delta, self.weights, unit)


def problem(
    law: FittableLaw,
    columns: Columns,
    response: Array,
    weights: Array | None,
    protocol: FitProtocol,
    seed: int,
    last: int | None = None,
) -> Problem:
    """The problem of fitting ``law`` to rows: ``columns`` and ``response`` of shape (n,).

    ``last`` is the place of a parameter that is to be the last coordinate but for a factor, so that
    bounds can hold it; all parameters are where the law is not linear.
    """
    observed = law.on_scale(response)
    if not isinstance(law, LinearLaw):
        starts = starts_of(law, protocol, seed)
        model = law.model(columns)
        return Problem(law, model, observed, weights, protocol, law.bounds, starts, _same, _same)
    X = law.design(columns)
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
    start = (Q.T @ observed / scale)[None]
    return Problem(
        law, LinearModel(Q * scale), observed, weights, protocol, free, start, working, coordinates
    )


def _spread(law: FittableLaw, observed: Array) -> float:
    """The unit of steps and thresholds: a response that is no logarithm may be in any."""
    return 1.0 if law.log_response else float(observed.std()) or 1.0


def _same(theta: Array) -> Array:
    return theta
