"""The kinds of law that the engine fits: sums of power laws, linear laws, and general ones.

Arrays: B parameter vectors, n rows, T terms, P parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Columns, FittableLaw

# ln of the least share of a term: nothing to a prediction, and its square is still a normal
# number; arithmetic on subnormal ones is a hundred times slower.
LEAST = -300.0

Feature = Callable[[Columns], Array]


@dataclass(frozen=True)
class Term:
    """``coefficient * exp(sum of exponent * feature)``: log-linear in its parameters.

    ``a / N^alpha`` is ``Term("a", {"alpha": minus_log("N")})``; a constant has no exponents.
    ``offset`` is a feature with the exponent 1: a factor without parameters is its exponential.
    """

    coefficient: str
    exponents: Mapping[str, Feature] = field(default_factory=dict)
    offset: Feature | None = None


@dataclass(frozen=True, kw_only=True)
class PowerLawSum(FittableLaw):
    """A sum of positive terms; fitted on ln of the response through one log-sum-exp."""

    terms: tuple[Term, ...]

    def model(self, columns: Columns) -> PowerLawModel:
        values = self.columns(columns)
        n = len(next(iter(values.values())))
        position = {name: i for i, name in enumerate(self.names)}
        terms, offsets = [], []
        for term in self.terms:
            index = [position[name] for name in (term.coefficient, *term.exponents)]
            factors = [np.ones(n), *(feature(values) for feature in term.exponents.values())]
            terms.append((np.array(index), np.stack(factors)))
            offsets.append(np.zeros(n) if term.offset is None else term.offset(values))
        return PowerLawModel(terms, np.stack(offsets), len(position))

    def shares(self, params: Mapping[str, float], columns: Columns) -> dict[str, Array]:
        _, share_BTn = self.model(columns).evaluate(self.vector(params)[None])
        return {t.coefficient: own for t, own in zip(self.terms, share_BTn[0], strict=True)}

    def confounded(self, columns: Columns) -> list[tuple[str, str]]:
        """Pairs (exponent, coefficient): the exponent's feature is the same in all rows."""
        values = self.columns(columns)
        return [
            (name, term.coefficient)
            for term in self.terms
            for name, feature in term.exponents.items()
            if np.ptp(feature(values)) == 0
        ]


class PowerLawModel:
    """ln of a sum of log-linear terms over fixed rows: a ``Model`` whose state is the shares.

    ``terms`` holds each term's design: the indices of its parameters (k,) and their factors in
    the term's logarithm (k, n); ``offset_Tn`` is what is added to that logarithm.
    """

    def __init__(
        self, terms: list[tuple[NDArray[np.intp], Array]], offset_Tn: Array, n_params: int
    ) -> None:
        self.n, self.n_terms, self.n_params = offset_Tn.shape[1], len(terms), n_params
        self._terms, self._offset_Tn = terms, offset_Tn
        self._outer = [(x[:, None] * x[None]).reshape(-1, self.n).T for _, x in terms]  # (n, k k)
        design = np.zeros((n_params, self.n_terms, self.n))
        for t, (index, x_kn) in enumerate(terms):
            design[index, t] = x_kn
        self._design = design.reshape(n_params, -1)
        # Mean square change of the terms' logarithms, however small a share the terms have.
        self.metric = self._design @ self._design.T / self.n

    def rows(self, index: NDArray[np.intp]) -> PowerLawModel:
        terms = [(which, x_kn[:, index]) for which, x_kn in self._terms]
        return PowerLawModel(terms, self._offset_Tn[:, index], self.n_params)

    def evaluate(self, theta_BP: Array) -> tuple[Array, Array]:
        """ln prediction (B, n) and each term's share of the prediction (B, T, n)."""
        z_BTn = (theta_BP @ self._design).reshape(len(theta_BP), self.n_terms, self.n)
        z_BTn += self._offset_Tn
        top = z_BTn.max(axis=1)
        z_BTn -= top[:, None]
        np.maximum(z_BTn, LEAST, out=z_BTn)
        share_BTn = np.exp(z_BTn, out=z_BTn)
        total = share_BTn.sum(axis=1)
        share_BTn /= total[:, None]
        ln_prediction: Array = top + np.log(total)
        return ln_prediction, share_BTn

    def jacobian(self, share_BTn: Array) -> Array:
        jacobian = np.zeros((len(share_BTn), self.n_params, self.n))
        for t, (index, x_kn) in enumerate(self._terms):
            for p, x_n in zip(index, x_kn, strict=True):
                jacobian[:, p] += share_BTn[:, t] * x_n
        return jacobian

    def curvature(self, share_BTn: Array, psi_Bn: Array) -> Array:
        """A log-sum-exp's Hessian is the covariance of the terms' design under their shares."""
        J_BPn = self.jacobian(share_BTn)
        moment: Array = -np.matmul(J_BPn * psi_Bn[:, None], J_BPn.transpose(0, 2, 1))
        for t, (index, _) in enumerate(self._terms):
            k = len(index)
            block = ((share_BTn[:, t] * psi_Bn) @ self._outer[t]).reshape(-1, k, k)
            moment[:, index[:, None], index[None]] += block
        return moment


@dataclass(frozen=True, kw_only=True)
class LinearLaw(FittableLaw):
    """Linear in its working-scale parameters, on the response itself or on its logarithm."""

    features: Mapping[str, Feature]  # parameter -> what it multiplies
    log_response: bool = False

    def model(self, columns: Columns) -> LinearModel:
        return LinearModel(self.design(columns))

    def design(self, columns: Columns) -> Array:
        """The design matrix, shape (n, P)."""
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        rows = [np.broadcast_to(self.features[name](values), shape) for name in self.names]
        return np.stack(rows, axis=-1)


class LinearModel:
    """A design matrix as a ``Model``; its state is the parameter vectors."""

    def __init__(self, X_nP: Array) -> None:
        self.X_nP = X_nP
        self.n, self.n_params = X_nP.shape
        self.metric = X_nP.T @ X_nP / self.n

    def rows(self, index: NDArray[np.intp]) -> LinearModel:
        return LinearModel(self.X_nP[index])

    def evaluate(self, theta_BP: Array) -> tuple[Array, Array]:
        return theta_BP @ self.X_nP.T, theta_BP

    def jacobian(self, theta_BP: Array) -> Array:
        return np.broadcast_to(self.X_nP.T, (len(theta_BP), self.n_params, self.n))

    def curvature(self, theta_BP: Array, psi_Bn: Array) -> Array:
        return np.zeros((len(theta_BP), self.n_params, self.n_params))


# Working-scale vectors (B, P) and columns (n,) -> predictions (B, n) on the objective's scale and
# their derivatives (B, P, n).
ValueAndJacobian = Callable[[Array, Columns], tuple[Array, Array]]


@dataclass(frozen=True, kw_only=True)
class GeneralLaw(FittableLaw):
    """A law whose module supplies value and Jacobian; second derivatives are differences of it."""

    function: ValueAndJacobian

    def model(self, columns: Columns) -> GeneralModel:
        return GeneralModel(self.function, self.columns(columns), len(self.parameters))


class GeneralModel:
    """A general law over fixed rows: a ``Model`` whose state is the parameter vectors."""

    def __init__(self, function: ValueAndJacobian, columns: Columns, n_params: int) -> None:
        self._function, self._columns, self.n_params = function, columns, n_params
        self.n = len(next(iter(columns.values())))
        self.metric = np.eye(n_params)

    def rows(self, index: NDArray[np.intp]) -> GeneralModel:
        columns = {name: values[index] for name, values in self._columns.items()}
        return GeneralModel(self._function, columns, self.n_params)

    def evaluate(self, theta_BP: Array) -> tuple[Array, Array]:
        return self._function(theta_BP, self._columns)[0], theta_BP

    def jacobian(self, theta_BP: Array) -> Array:
        return self._function(theta_BP, self._columns)[1]

    def curvature(self, theta_BP: Array, psi_Bn: Array) -> Array:
        """Central differences of the exact gradient: an error of 1e-10 or so, relatively."""
        B, P = theta_BP.shape
        curvature = np.empty((B, P, P))
        # The 2 P neighbours of as many vectors together as make few calls, of arrays in cache.
        together = max(1, 2**18 // (2 * P * P * self.n))
        for at in range(0, B, together):
            theta, psi = theta_BP[at : at + together], psi_Bn[at : at + together]
            h_BP = 6e-6 * np.maximum(np.abs(theta), 1.0)
            step_BPP = h_BP[:, :, None] * np.eye(P)
            ends = np.stack([theta[:, None] + step_BPP, theta[:, None] - step_BPP])
            up, down = self.jacobian(ends.reshape(-1, P)).reshape(*ends.shape, self.n)
            slope = np.matmul(up - down, psi[:, None, :, None])[..., 0]
            curvature[at : at + together] = slope / (2 * h_BP[:, :, None])
        return 0.5 * (curvature + curvature.transpose(0, 2, 1))


def minus_log(name: str) -> Feature:
    """The feature of ``1 / name^exponent``."""
    return lambda columns: -np.log(columns[name])


def log(name: str) -> Feature:
    """The feature of ``name^exponent``."""
    return lambda columns: np.log(columns[name])


def minus_log_density(name: str) -> Feature:
    """The feature of ``1 / (1 - name)^exponent``, exact for small values."""
    return lambda columns: -np.log1p(-columns[name])


def one(columns: Columns) -> Array:
    """The feature of an intercept, or of ln of a coefficient."""
    return np.ones_like(next(iter(columns.values())))
