"""What a fit minimises, with gradient and curvature, for batches of parameter vectors.

AIC, BIC and profiles rest on the Huber likelihood of residuals whose scale sigma is fitted. The
density of a residual r is exp(-huber(r / sigma, delta)) / (sigma Z). At the usual delta of 1e-3 it
is Laplace's but for a tiny round top. Source: Besiroglu et al. 2024, the refit of Chinchilla.

Arrays: B parameter vectors, n rows, P parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Mask, Model, State

Index = NDArray[np.intp]  # numbers of rows, of vectors or of parameters


def huber(residual: Array, delta: float) -> Array:
    """Returns the Huber loss of each residual r.

    It is r^2 / 2 within ``delta``, which may be infinite, and delta (|r| - delta / 2) beyond it.
    """
    inner = np.clip(residual, -delta, delta)
    return inner * (residual - 0.5 * inner)


def sigma_huber(residual: Array, delta: float, weights: Array | None) -> float:
    """Returns the negative log-likelihood of weighted residuals (n,), at the best sigma."""
    from scipy.optimize import minimize_scalar  # advice needs an objective without it
    from scipy.special import ndtr

    normaliser = np.sqrt(2 * np.pi) * (2 * ndtr(delta) - 1)
    normaliser += 2 / delta * np.exp(-0.5 * delta**2)
    w = np.ones_like(residual) if weights is None else weights

    def nll(ln_sigma: float) -> float:
        losses = w * huber(residual / np.exp(ln_sigma), delta)
        return float(losses.sum() + len(residual) * (ln_sigma + np.log(normaliser)))

    # In the density's Laplace limit the best sigma is delta times the mean absolute residual.
    guess = np.log(max(float((w * np.abs(residual)).mean()), 1e-15) * delta)
    bounds = (guess - 10, guess + 10)
    return float(minimize_scalar(nll, bounds=bounds, options={"xatol": 1e-10}).fun)


@dataclass(frozen=True)
class Evaluation:
    """An objective at a batch of vectors."""

    theta: Array  # (B, P) the vectors
    residual: Array  # (B, n) predictions minus observations
    value: Array  # (B,) the objective
    state: State  # the model's

    def take(self, index: Index) -> Evaluation:
        return Evaluation(
            self.theta[index],
            self.residual[index],
            self.value[index],
            tuple(np.take(array, index, axis=-2) for array in self.state),
        )

    def put(self, index: Index, other: Evaluation) -> Evaluation:
        """Returns a copy with the vectors of ``other`` in the places of ``index``."""
        value = self.value.copy()
        value[index] = other.value
        theta, residual, *state = (
            _put(own, index, new)
            for own, new in zip(
                (self.theta, self.residual, *self.state),
                (other.theta, other.residual, *other.state),
                strict=True,
            )
        )
        return Evaluation(theta, residual, value, tuple(state))

    def moved(self, other: Evaluation, moves_B: Mask) -> Evaluation:
        """Returns a copy that takes the vectors in ``moves_B`` from ``other``."""
        if moves_B.all():
            return other
        moves_B1 = moves_B[:, None]
        return Evaluation(
            np.where(moves_B1, other.theta, self.theta),
            np.where(moves_B1, other.residual, self.residual),
            np.where(moves_B, other.value, self.value),
            tuple(np.where(moves_B1, *pair) for pair in zip(other.state, self.state, strict=True)),
        )


def _put(whole: Array, index: Index, part: Array) -> Array:
    whole = whole.copy()
    whole[..., index, :] = part
    return whole


class Slopes(NamedTuple):
    """An objective's derivatives at a batch of vectors.

    ``scale`` is the largest diagonal element of the quadratic that touches the objective from
    above, in units of the model's metric.
    """

    value: Array  # (B,)
    gradient: Array  # (B, P)
    curvature: Array  # (B, P, P)
    scale: Array  # (B,)
    jacobian: Array  # (P, B, n) of the predictions
    weights: Array  # (B, n) of the squares of the rows' residuals within the curvature


class Objective:
    """The function f(theta) = unit * sum_i weight_i huber(prediction_i - observed_i, delta).

    Every objective of a fit protocol is one of these: the sum of Huber losses itself, the sum of
    squares (unit 2, an infinite delta), the sum of absolute values (unit 1 / delta, a small delta).

    ``model`` is the law over n rows, and ``observed`` (n,) the response on the law's scale. The
    ``weights`` are (n,) for all vectors, or (B, n) with one row for each vector; 1 by default.
    ``observed`` may have a row for each vector too, where the weights have.
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

    def take(self, index: Index) -> Objective:
        if len(self.weights) == 1:
            return self
        observed = self.observed[index] if self.observed.ndim == 2 else self.observed
        return Objective(self.model, observed, self.delta, self.weights[index], self.unit)

    def rows(self, index: Index) -> Objective:
        model, weights = self.model.rows(index), self.weights[:, index]
        return Objective(model, self.observed[..., index], self.delta, weights, self.unit)

    def value(self, theta_BP: Array) -> Array:
        """Returns f, shape (B,)."""
        return self.evaluate(theta_BP).value

    def evaluate(self, theta_BP: Array) -> Evaluation:
        """Returns f at each vector, and what its derivatives there are made of."""
        prediction, state = self.model.evaluate(theta_BP)
        residual = prediction - self.observed
        losses = huber(residual, self.delta)
        if len(self.weights) == 1:
            value = losses @ self.weights[0]
        else:
            value = np.einsum("bn,bn->b", losses, self.weights)
        return Evaluation(theta_BP, residual, self.unit * value, state)

    def gradient_terms(self, theta: Array) -> Array:
        """Returns the sums (P,) of the rows' absolute terms in the gradient at ``theta`` (P,)."""
        point = self.evaluate(theta[None])
        psi_n = np.minimum(np.abs(point.residual[0]), self.delta)
        J_Pn = self.model.jacobian(point.state)[0]
        return np.asarray(np.abs(J_Pn) @ (self.unit * self.weights[0] * psi_n))

    def derivatives(
        self, point: Evaluation | Array, exact_B: Mask, towards_Bn: Array | None = None
    ) -> Slopes:
        """Returns value, gradient and curvature at vectors (B, P), or at an evaluation of them.

        Vectors in ``exact_B`` get the exact Hessian. The others get that of the quadratic that
        touches f from above (iteratively reweighted least squares), which is never negative.
        Within the exact Hessian, the second derivative of a row's loss is its mean on the way to
        the residuals ``towards_Bn``, where these are given.
        """
        if not isinstance(point, Evaluation):
            point = self.evaluate(point)
        model, residual = self.model, point.residual
        J_PBn = model.jacobian(point.state).swapaxes(0, 1)
        w, size = self.unit * self.weights, np.abs(residual)
        psi = w * np.clip(residual, -self.delta, self.delta)
        above = np.broadcast_to(w, size.shape)
        if np.isfinite(self.delta):
            above = w * self.delta / np.maximum(size, self.delta)
        q = above
        if not exact_B.any():
            gradient, curvature = _products(J_PBn, psi, q)
            above_BP = np.diagonal(curvature, axis1=1, axis2=2)
        else:
            bend = psi * exact_B[:, None]
            q = np.where(exact_B[:, None], w * self._row_curvature(residual, towards_Bn), above)
            gradient, curvature = _products(J_PBn, psi, q - bend if model.log_of_sum else q)
            curvature += model.curvature(point.state, bend)
            above_BP = np.einsum("pbn,pbn->bp", J_PBn, J_PBn * above)
        length = np.diag(model.metric)
        length = np.maximum(length, 1e-12 * length.max())  # a feature may be 0 in all rows
        scale = (above_BP / length).max(axis=1)
        return Slopes(point.value, gradient, curvature, scale, J_PBn, q)

    def _row_curvature(self, residual: Array, towards: Array | None) -> Array:
        """Returns the second derivative of each row's loss, or its mean on the way to ``towards``.

        Both are (B, n). The derivative jumps from 1 to 0 where a residual crosses the threshold.
        Only the mean shows which rows a step would take across it.
        """
        d = self.delta
        own = (np.abs(residual) <= d).astype(float)
        if towards is None:
            return own
        way = towards - residual
        rise = np.clip(towards, -d, d) - np.clip(residual, -d, d)
        return np.asarray(np.divide(rise, way, out=own, where=np.abs(way) > 1e-6 * d))


def _products(J_PBn: Array, psi_Bn: Array, q_Bn: Array) -> tuple[Array, Array]:
    """Returns J psi (B, P) and J diag(q) J' (B, P, P), in one product."""
    P = len(J_PBn)
    weighted = np.empty((P + 1, *q_Bn.shape))
    np.multiply(J_PBn, q_Bn, out=weighted[:P])
    weighted[P] = psi_Bn
    product = np.matmul(weighted.swapaxes(0, 1), J_PBn.transpose(1, 2, 0))
    return product[:, P], product[:, :P]
