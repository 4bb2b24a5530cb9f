"""Priors of parameters as rows of a fit, such as a floor that is known from elsewhere.

A prior is one more observation: of the parameter itself, with a known error. Its row is scaled so
that its loss is quadratic up to five standard deviations, whatever the threshold of the rows'
losses, and weighted so that it counts as much as its error says beside the scatter of the rows. A
bootstrap draws its observation anew, as it draws rows.
"""

from dataclasses import dataclass

import numpy as np

from moelaws.fitting.objective import Index
from moelaws.laws.base import Array, FittableLaw, Model, State

REACH = 5.0  # standard deviations within which a prior's loss is quadratic


@dataclass(frozen=True)
class Priors:
    """The K rows that the priors of a law's parameters are, on the working scale.

    The prior of a positive coefficient, which is fitted as its logarithm, becomes one of the
    logarithm with the same relative error.
    """

    index: Index  # (K,) of the parameters
    mean: Array  # (K,)
    sd: Array  # (K,)

    @classmethod
    def of(cls, law: FittableLaw) -> "Priors":
        known = [(i, p, p.prior) for i, p in enumerate(law.parameters) if p.prior is not None]
        mean = [p.working(prior[0]) for _, p, prior in known]
        sd = [prior[1] / (prior[0] if p.scale == "log" else 1.0) for _, p, prior in known]
        return cls(np.array([i for i, _, _ in known], int), np.array(mean), np.array(sd))

    def factors(self, delta: float) -> Array:
        """Returns what each row multiplies its parameter by, (K,)."""
        return (delta / REACH if np.isfinite(delta) else 1.0) / self.sd

    def weights(self, residual: Array, delta: float) -> Array:
        """Returns the rows' weights (K,), where the law's own rows have ``residual`` (n,)."""
        scale = float((np.clip(residual, -delta, delta) * residual).mean())
        return np.full(len(self.sd), scale * (REACH / delta) ** 2 if np.isfinite(delta) else scale)

    def drawn(self, delta: float, draws: int, seed: int) -> Array:
        """Returns draws (draws, K) of what the rows observe."""
        rng = np.random.default_rng([seed, 2])  # not the stream that draws the rows
        normal = rng.standard_normal((draws, len(self.sd)))
        return (self.mean + self.sd * normal) * self.factors(delta)


class WithPriors:
    """A law's ``Model`` with a row for each prior behind its own rows."""

    def __init__(self, model: Model, index: Index, factors: Array) -> None:
        self._model, self._index, self._factors = model, index, factors
        self.n, self.n_params = model.n + len(index), model.n_params
        self.metric, self.log_of_sum = model.metric, model.log_of_sum

    def rows(self, index: Index) -> "WithPriors":
        own, prior = index[index < self._model.n], index[index >= self._model.n] - self._model.n
        return WithPriors(self._model.rows(own), self._index[prior], self._factors[prior])

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        prediction, state = self._model.evaluate(theta_BP)
        return np.hstack([prediction, theta_BP[:, self._index] * self._factors]), state

    def jacobian(self, state: State) -> Array:
        own = self._model.jacobian(state)
        slopes = np.zeros((len(own), self.n_params, len(self._index)))
        slopes[:, self._index, np.arange(len(self._index))] = self._factors
        return np.concatenate([own, slopes], axis=2)

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        curvature = self._model.curvature(state, psi_Bn[:, : self._model.n])
        if self.log_of_sum:  # whose outer product of the Jacobian the engine takes off again
            own = psi_Bn[:, self._model.n :] * self._factors**2
            curvature[:, self._index, self._index] += own
        return curvature
