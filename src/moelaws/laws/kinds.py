"""The kinds of law that the engine fits: sums of power laws and linear laws.

Arrays: B parameter vectors, n rows, T terms, P parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Columns, Law

# ln of the least share of a term: nothing to a prediction, and its square is still a normal
# number; arithmetic on subnormal ones is a hundred times slower.
LEAST = -300.0

Feature = Callable[[Columns], Array]


@dataclass(frozen=True)
class Term:
    """``coefficient * exp(sum of exponent * feature)``: log-linear in its parameters.

    ``a / N^alpha`` is ``Term("a", {"alpha": minus_log("N")})``; a constant has no exponents.
    """

    coefficient: str
    exponents: Mapping[str, Feature] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PowerLawSum(Law):
    """A sum of positive terms; fitted on ln of the response through one log-sum-exp."""

    terms: tuple[Term, ...]

    def design(self, columns: Columns) -> PowerLawDesign:
        """The design rows of ``columns`` (each of shape (n,))."""
        values = self.columns(columns)
        n = len(next(iter(values.values())))
        position = {name: i for i, name in enumerate(self.names)}
        terms = []
        for term in self.terms:
            index = [position[name] for name in (term.coefficient, *term.exponents)]
            factors = [np.ones(n), *(feature(values) for feature in term.exponents.values())]
            terms.append((np.array(index), np.stack(factors)))
        return PowerLawDesign(terms, len(position))

    def predict(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> Array:
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        design = self.design({name: value.reshape(-1) for name, value in values.items()})
        ln_L, _ = design.evaluate(self.vector(params)[None])
        prediction: Array = np.exp(ln_L[0]).reshape(shape)
        return prediction

    def confounded(self, columns: Columns) -> list[tuple[str, str]]:
        """Pairs (exponent, coefficient) that these rows cannot tell apart: a constant feature."""
        values = self.columns(columns)
        return [
            (name, term.coefficient)
            for term in self.terms
            for name, feature in term.exponents.items()
            if np.ptp(feature(values)) == 0
        ]


class PowerLawDesign:
    """ln of a sum of log-linear terms over fixed rows, for batches of parameter vectors.

    ``terms`` holds each term's design: the indices of its parameters (k,) and their factors in
    the term's logarithm (k, n).
    """

    def __init__(self, terms: list[tuple[NDArray[np.intp], Array]], n_params: int) -> None:
        self.n, self.n_terms, self.n_params = terms[0][1].shape[1], len(terms), n_params
        self._terms = terms
        self._outer = [(x[:, None] * x[None]).reshape(-1, self.n).T for _, x in terms]  # (n, k k)

    def evaluate(self, theta_BP: Array) -> tuple[Array, Array]:
        """ln prediction (B, n) and each term's share of the prediction (B, T, n)."""
        z_BTn = np.zeros((len(theta_BP), self.n_terms, self.n))
        for t, (index, x_kn) in enumerate(self._terms):
            for p, x_n in zip(index, x_kn, strict=True):
                z_BTn[:, t] += theta_BP[:, p, None] * x_n
        top = z_BTn.max(axis=1)
        z_BTn -= top[:, None]
        np.maximum(z_BTn, LEAST, out=z_BTn)
        share_BTn = np.exp(z_BTn, out=z_BTn)
        total = share_BTn.sum(axis=1)
        share_BTn /= total[:, None]
        ln_prediction: Array = top + np.log(total)
        return ln_prediction, share_BTn

    def jacobian(self, share_BTn: Array) -> Array:
        """d ln prediction / d parameter, (B, P, n), from the shares of :meth:`evaluate`."""
        jacobian = np.zeros((len(share_BTn), self.n_params, self.n))
        for t, (index, x_kn) in enumerate(self._terms):
            for p, x_n in zip(index, x_kn, strict=True):
                jacobian[:, p] += share_BTn[:, t] * x_n
        return jacobian

    def second_moment(self, share_BTn: Array, q_Bn: Array) -> Array:
        """Sum over rows and terms of ``q share x x'``, (B, P, P).

        With J the Jacobian, the Hessian of a log-sum-exp is the covariance of the terms' design
        rows under their shares: this at q = 1 in one row, minus J J'.
        """
        P = self.n_params
        moment = np.zeros((len(q_Bn), P, P))
        for t, (index, _) in enumerate(self._terms):
            k = len(index)
            block = ((share_BTn[:, t] * q_Bn) @ self._outer[t]).reshape(-1, k, k)
            moment[:, index[:, None], index[None]] += block
        return moment


@dataclass(frozen=True, kw_only=True)
class LinearLaw(Law):
    """Linear in its parameters; fitted by least squares on the response itself."""

    features: Mapping[str, Feature]  # parameter -> what it multiplies

    def design(self, columns: Columns) -> Array:
        """The design matrix, shape (n, P)."""
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        rows = [np.broadcast_to(self.features[name](values), shape) for name in self.names]
        return np.stack(rows, axis=-1)

    def predict(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> Array:
        prediction: Array = self.design(self.columns(columns)) @ self.vector(params)
        return prediction


def minus_log(name: str) -> Feature:
    """The feature of ``1 / name^exponent``."""
    return lambda columns: -np.log(columns[name])


def minus_log_density(name: str) -> Feature:
    """The feature of ``1 / (1 - name)^exponent``, exact for small values."""
    return lambda columns: -np.log1p(-columns[name])
