"""Sum of Huber losses of ln L, with its gradient and curvature, for batches of parameter vectors.

Arrays: B parameter vectors, n rows, P parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Mask
from moelaws.laws.kinds import PowerLawDesign


def huber(residual: Any, delta: float) -> Array:
    """Huber loss, elementwise: r^2 / 2 within ``delta``, delta (|r| - delta / 2) beyond it."""
    size = np.abs(residual)
    loss: Array = np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))
    return loss


class HuberSum:
    """f(theta) = sum_i weight_i huber(ln L-hat_i - ln L_i).

    Args:
        design: the law's design over n rows.
        ln_L: (n,) ln of the observed losses.
        delta: Huber threshold.
        weights: (n,) for all vectors, or (B, n) with one row for each vector; 1 by default.
    """

    def __init__(
        self, design: PowerLawDesign, ln_L: Array, delta: float, weights: Array | None = None
    ) -> None:
        self.design, self.ln_L, self.delta = design, ln_L, delta
        self.weights = np.ones((1, design.n)) if weights is None else np.atleast_2d(weights)

    def take(self, index: NDArray[np.intp]) -> HuberSum:
        """The objective of the vectors at ``index`` of a batch."""
        weights = self.weights if len(self.weights) == 1 else self.weights[index]
        return HuberSum(self.design, self.ln_L, self.delta, weights)

    def value(self, theta_BP: Array) -> Array:
        """f, shape (B,)."""
        residual = self.design.evaluate(theta_BP)[0] - self.ln_L
        total: Array = (self.weights * huber(residual, self.delta)).sum(axis=1)
        return total

    def derivatives(self, theta_BP: Array, exact_B: Mask) -> tuple[Array, Array, Array, Array]:
        """Value, gradient and curvature at each vector.

        Args:
            theta_BP: parameter vectors.
            exact_B: which of them want the exact Hessian; the others get that of the quadratic
                that touches f from above (iteratively reweighted least squares), which is never
                negative.

        Returns:
            f (B,), gradient (B, P), curvature (B, P, P), and the largest diagonal element (B,) of
            the quadratic from above, as a scale.
        """
        ln_prediction, share = self.design.evaluate(theta_BP)
        J_BPn = self.design.jacobian(share)
        residual = ln_prediction - self.ln_L
        size = np.abs(residual)
        psi = self.weights * np.clip(residual, -self.delta, self.delta)
        gradient = np.matmul(J_BPn, psi[:, :, None])[..., 0]
        above = self.weights * (self.delta / np.maximum(size, self.delta))
        scale = np.matmul(J_BPn**2, above[:, :, None])[..., 0].max(axis=1)
        own = self.weights * (size <= self.delta) - psi
        q = np.where(exact_B[:, None], own, above)
        curvature = np.matmul(J_BPn * q[:, None], J_BPn.transpose(0, 2, 1))
        if exact_B.any():
            curvature[exact_B] += self.design.second_moment(share[exact_B], psi[exact_B])
        value = (self.weights * huber(residual, self.delta)).sum(axis=1)
        return value, gradient, curvature, scale
