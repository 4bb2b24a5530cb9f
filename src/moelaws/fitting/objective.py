"""What a fit minimises, with gradient and curvature, for batches of parameter vectors.

Arrays: B parameter vectors, n rows, P parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Mask, Model


def huber(residual: Any, delta: float) -> Array:
    """Huber loss, elementwise: r^2 / 2 within ``delta``, delta (|r| - delta / 2) beyond it.

    ``delta`` may be infinite: r^2 / 2 everywhere.
    """
    size = np.abs(residual)
    inner = np.minimum(size, delta)
    loss: Array = inner * (size - 0.5 * inner)
    return loss


class Objective:
    """f(theta) = unit * sum_i weight_i huber(prediction_i - observed_i, delta).

    Every objective of a fit protocol is one of these: the sum of Huber losses itself, the sum of
    squares (unit 2, an infinite delta), the sum of absolute values (unit 1 / delta, a small delta).

    Args:
        model: the law over n rows.
        observed: (n,) the response on the law's scale.
        delta: Huber threshold.
        weights: (n,) for all vectors, or (B, n) with one row for each vector; 1 by default.
        unit: factor of the whole.
    """

    def __init__(
        self,
        model: Model,
        observed: Array,
        delta: float,
        weights: Array | None = None,
        unit: float = 1.0,
    ) -> None:
        self.model, self.observed, self.delta, self.unit = model, observed, delta, unit
        self.weights = np.ones((1, model.n)) if weights is None else np.atleast_2d(weights)

    def take(self, index: NDArray[np.intp]) -> Objective:
        """The objective of the vectors at ``index`` of a batch."""
        if len(self.weights) == 1:
            return self
        return Objective(self.model, self.observed, self.delta, self.weights[index], self.unit)

    def rows(self, index: NDArray[np.intp]) -> Objective:
        """The objective over some of the rows."""
        return Objective(
            self.model.rows(index),
            self.observed[index],
            self.delta,
            self.weights[:, index],
            self.unit,
        )

    def at(self, delta: float, unit: float = 1.0, weights: Array | None = None) -> Objective:
        """The same with another threshold, unit or weights."""
        kept = self.weights if weights is None else weights
        return Objective(self.model, self.observed, delta, kept, unit)

    def residual(self, theta_BP: Array) -> Array:
        """Predictions minus observations on the law's scale, (B, n)."""
        residual: Array = self.model.evaluate(theta_BP)[0] - self.observed
        return residual

    def value(self, theta_BP: Array) -> Array:
        """f, shape (B,)."""
        losses = huber(self.residual(theta_BP), self.delta)
        total: Array = self.unit * (self.weights * losses).sum(axis=1)
        return total

    def pull(self, theta: Array) -> Array:
        """How large the gradient at ``theta`` (P,) were if no row's part cancelled another's."""
        prediction, state = self.model.evaluate(theta[None])
        psi_n = np.minimum(np.abs(prediction[0] - self.observed), self.delta)
        pull: Array = np.abs(self.model.jacobian(state)[0]) @ (self.unit * self.weights[0] * psi_n)
        return pull

    def derivatives(self, theta_BP: Array, exact_B: Mask) -> tuple[Array, Array, Array, Array]:
        """Value, gradient and curvature at each vector.

        Args:
            theta_BP: parameter vectors.
            exact_B: which of them want the exact Hessian; the others get that of the quadratic
                that touches f from above (iteratively reweighted least squares), which is never
                negative.

        Returns:
            f (B,), gradient (B, P), curvature (B, P, P), and the curvature's scale (B,): the
            largest diagonal element of the quadratic from above, in units of the model's metric.
        """
        prediction, state = self.model.evaluate(theta_BP)
        J_BPn = self.model.jacobian(state)
        residual = prediction - self.observed
        size = np.abs(residual)
        inner = np.minimum(size, self.delta)
        w = self.unit * self.weights
        psi = w * np.copysign(inner, residual)
        gradient = np.matmul(J_BPn, psi[:, :, None])[..., 0]
        above = w * (inner / np.maximum(size, np.finfo(float).tiny))
        q = np.where(exact_B[:, None], w * (size <= self.delta), above)
        weighted = J_BPn * q[:, None]
        curvature = np.matmul(weighted, J_BPn.transpose(0, 2, 1))
        P = range(J_BPn.shape[1])
        length = np.diag(self.model.metric)
        length = np.maximum(length, 1e-12 * length.max())  # a feature may be zero in all rows
        scale = (curvature[:, P, P] / length).max(axis=1)
        if exact_B.any():
            diagonal = np.matmul(J_BPn[exact_B] ** 2, above[exact_B, :, None])[..., 0]
            scale[exact_B] = (diagonal / length).max(axis=1)
            curvature[exact_B] += self.model.curvature(state[exact_B], psi[exact_B])
        value = (w * (inner * (size - 0.5 * inner))).sum(axis=1)
        return value, gradient, curvature, scale
