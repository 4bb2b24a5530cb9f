"""The kinds of law that the engine fits: sums of power laws, linear laws, and general ones.

Arrays: B parameter vectors, n rows, T terms, P parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Columns, FittableLaw, State
from moelaws.laws.terms import Feature, Term, one, symbol
from moelaws.laws.vocabulary import LOSS

# A term whose logarithm is so far below the largest one adds nothing to a prediction. Logarithms
# are cut here, where the square of a weight is still a normal number: subnormal ones are slow.
MIN_LOG_WEIGHT = -300.0


@dataclass(frozen=True, kw_only=True)
class PowerLawSum(FittableLaw):
    """A sum of positive terms; fitted on ln of the response through one log-sum-exp."""

    kind = "sum of power laws"
    terms: tuple[Term, ...]

    def model(self, columns: Columns) -> PowerLawModel:
        values = self.columns(columns)
        n = len(next(iter(values.values())))
        position = {name: i for i, name in enumerate(self.names)}
        terms = []
        for term in self.terms:
            index = [position[parameter.name] for parameter in term.parameters]
            factors = [np.ones(n), *(power.feature(values) for power in term.powers)]
            terms.append((np.array(index), np.stack(factors)))
        return PowerLawModel(terms, len(position))

    def fractions(self, params: Mapping[str, float], columns: Columns) -> dict[str, Array]:
        _, (weight_TBn,) = self.model(columns).evaluate(self.vector(params)[None])
        return {t.coefficient.name: x for t, x in zip(self.terms, weight_TBn[:, 0], strict=True)}


def power_law_sum(terms: Sequence[Term], order: Sequence[str] = (), **stated: Any) -> PowerLawSum:
    """Returns the sum of ``terms`` as a law of the loss.

    The terms give parameters, starts, variables and texts. ``order`` holds the parameters' names
    if their order is not that of the terms. ``stated`` holds the law's other fields, and those that
    replace what the terms give.
    """
    parameters = {own.name: own for term in terms for own in term.parameters}
    ordered = tuple(parameters[name] for name in order or parameters)
    return PowerLawSum(terms=tuple(terms), parameters=ordered, **(_texts(terms, stated) | stated))


def power_law(term: Term, **stated: Any) -> LinearLaw:
    """Returns one term as a law, a straight line in logarithms; ``stated`` as above."""
    features = {p.exponent.name: p.feature for p in term.powers}
    return LinearLaw(
        parameters=tuple(replace(p, starts=()) for p in term.parameters),
        features={term.coefficient.name: one} | features,
        log_response=True,
        **(_texts([term], stated) | stated),
    )


def _texts(terms: Sequence[Term], stated: Mapping[str, Any]) -> dict[str, Any]:
    response = stated.get("response", LOSS)
    variables = {p.base.variable.name: p.base.variable for t in terms for p in t.powers}
    return {
        "variables": tuple(variables.values()),
        "response": response,
        "equation": f"{response.name} = {' + '.join(t.equation for t in terms)}",
        "latex": f"{symbol(response.name)} = {' + '.join(t.latex for t in terms)}",
    }


def log_sum_exp(z_TBn: Array) -> Array:
    """Returns ln of the sum of exp(z) over terms (B, n); ``z_TBn`` becomes the softmax weights."""
    top = z_TBn.max(axis=0)
    z_TBn -= top
    np.maximum(z_TBn, MIN_LOG_WEIGHT, out=z_TBn)
    np.exp(z_TBn, out=z_TBn)
    total = z_TBn.sum(axis=0)
    z_TBn /= total
    return np.asarray(top + np.log(total))


class PowerLawModel:
    """The logarithm of a sum of log-linear terms over fixed rows.

    Its state is the terms' softmax weights. ``terms`` holds each term's design: the indices of its
    parameters (k,) and their factors in the term's logarithm (k, n).
    """

    log_of_sum = True

    def __init__(self, terms: list[tuple[NDArray[np.intp], Array]], n_params: int) -> None:
        self.n, self.n_params = terms[0][1].shape[1], n_params
        self._terms = terms
        self._outer = [(x[:, None] * x[None]).reshape(-1, self.n).T for _, x in terms]  # (n, k k)
        self._design = np.zeros((len(terms), n_params, self.n))
        for t, (index, x_kn) in enumerate(terms):
            self._design[t, index] = x_kn
        # Mean square change of the terms' logarithms, however small their weights are
        self.metric = np.einsum("tpn,tqn->pq", self._design, self._design) / self.n

    def rows(self, index: NDArray[np.intp]) -> PowerLawModel:
        terms = [(params, x_kn[:, index]) for params, x_kn in self._terms]
        return PowerLawModel(terms, self.n_params)

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        """Returns ln prediction (B, n) and each term's weight in the prediction (T, B, n)."""
        z_TBn = theta_BP @ self._design
        return log_sum_exp(z_TBn), (z_TBn,)

    def jacobian(self, state: State) -> Array:
        (weight_TBn,) = state
        jacobian_PBn = np.zeros((self.n_params, *weight_TBn.shape[1:]))
        for weight_Bn, (index, x_kn) in zip(weight_TBn, self._terms, strict=True):
            for p, x_n in zip(index, x_kn, strict=True):
                jacobian_PBn[p] += weight_Bn * x_n
        return jacobian_PBn.swapaxes(0, 1)

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        """Returns the second moments of the terms' design under their weights."""
        (weight_TBn,) = state
        moment = np.zeros((len(psi_Bn), self.n_params, self.n_params))
        for weight_Bn, (index, _), outer in zip(weight_TBn, self._terms, self._outer, strict=True):
            k = len(index)
            block = ((weight_Bn * psi_Bn) @ outer).reshape(-1, k, k)
            moment[:, index[:, None], index[None]] += block
        return moment


@dataclass(frozen=True, kw_only=True)
class LinearLaw(FittableLaw):
    """A law linear in its working-scale parameters, of the response or of its logarithm."""

    kind = "linear"
    features: Mapping[str, Feature]  # parameter -> what it multiplies
    log_response: bool = False

    def model(self, columns: Columns) -> LinearModel:
        return LinearModel(self.design(columns))

    def design(self, columns: Columns) -> Array:
        """Returns the design matrix, shape (n, P)."""
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        rows = [np.broadcast_to(self.features[name](values), shape) for name in self.names]
        return np.stack(rows, axis=-1)


class LinearModel:
    """A design matrix as a ``Model``; its state is the parameter vectors."""

    log_of_sum = False

    def __init__(self, X_nP: Array) -> None:
        self.X_nP = X_nP
        self.n, self.n_params = X_nP.shape
        self.metric = X_nP.T @ X_nP / self.n

    def rows(self, index: NDArray[np.intp]) -> LinearModel:
        return LinearModel(self.X_nP[index])

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        return theta_BP @ self.X_nP.T, (theta_BP,)

    def jacobian(self, state: State) -> Array:
        (theta_BP,) = state
        return np.broadcast_to(self.X_nP.T, (len(theta_BP), self.n_params, self.n))

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        return np.zeros((len(psi_Bn), self.n_params, self.n_params))


# Working-scale vectors (B, P) and columns (n,) -> predictions (B, n) on the objective's scale and
# their derivatives (B, P, n).
ValueAndJacobian = Callable[[Array, Columns], tuple[Array, Array]]


@dataclass(frozen=True, kw_only=True)
class GeneralLaw(FittableLaw):
    """A law whose module supplies value and Jacobian.

    Second derivatives are differences of the Jacobian, unless the module supplies them, too, which
    makes a fit several times faster.
    """

    function: ValueAndJacobian
    # Vectors (B, P), columns (n,) and weights (B, n) of the rows -> weighted sums (B, P, P)
    second: Callable[[Array, Columns, Array], Array] | None = None
    linear: int = 0  # so many of its first parameters, in all of which together it is linear
    # Variable -> parameters that others make up for in rows where the variable is constant
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def model(self, columns: Columns) -> GeneralModel:
        return GeneralModel(self, self.columns(columns))


class GeneralModel:
    """A general law over fixed rows: a ``Model`` whose state is (vectors, Jacobian (P, B, n))."""

    log_of_sum = False

    def __init__(self, law: GeneralLaw, columns: Columns) -> None:
        self._law, self._columns, self.n_params = law, columns, len(law.parameters)
        self.n = len(next(iter(columns.values())))
        self.metric = np.eye(self.n_params)

    def rows(self, index: NDArray[np.intp]) -> GeneralModel:
        return GeneralModel(self._law, {name: x[index] for name, x in self._columns.items()})

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        prediction, jacobian_BPn = self._law.function(theta_BP, self._columns)
        return prediction, (theta_BP, jacobian_BPn.swapaxes(0, 1))

    def jacobian(self, state: State) -> Array:
        return state[1].swapaxes(0, 1)

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        """Returns central differences of the exact gradient, with a relative error near 1e-10.

        A law's own second derivatives come first, where it has them.
        """
        P, linear, needed = self.n_params, self._law.linear, np.flatnonzero(psi_Bn.any(axis=1))
        curvature = np.zeros((len(psi_Bn), P, P))
        if self._law.second is not None:
            curvature[needed] = self._law.second(state[0][needed], self._columns, psi_Bn[needed])
            return curvature
        # Vectors are taken together, each with its 2 K neighbours, while the arrays stay in cache.
        together = max(1, 2**16 // (2 * P * P * self.n))
        for at in range(0, len(needed), together):
            chosen = needed[at : at + together]
            theta, psi = state[0][chosen], psi_Bn[chosen]
            h_BP = 6e-6 * np.maximum(np.abs(theta), 1.0)
            step_BKP = (h_BP[:, :, None] * np.eye(P))[:, linear:]
            ends = np.stack([theta[:, None] + step_BKP, theta[:, None] - step_BKP])
            _, jacobian = self._law.function(ends.reshape(-1, P), self._columns)
            up, down = jacobian.reshape(*ends.shape, self.n)
            slope_BKP = np.matmul(up - down, psi[:, None, :, None])[..., 0]
            slope_BKP /= 2 * h_BP[:, linear:, None]
            curvature[chosen, linear:] = slope_BKP
            curvature[chosen, :, linear:] = slope_BKP.swapaxes(1, 2)
        return 0.5 * (curvature + curvature.transpose(0, 2, 1))
