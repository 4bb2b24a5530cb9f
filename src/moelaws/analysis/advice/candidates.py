"""Candidate laws: laws of the loss with coefficients, each of which is taken as the truth in turn.

A candidate law gives the loss of any plan, and its own best plan within the constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moelaws.analysis.advice.plans import COLUMNS, Constraints, Plans, Space
from moelaws.laws.base import Array, FittableLaw
from moelaws.spec.errors import UserError

_AT_ONCE = 2_000_000  # losses of draws that are held at once
_SIZES = 61  # of the grid on which each draw's best plan is sought
_OF_SPARSITY = {"S", "S_shared", "A", "expansion", "N", "N_total", "N_total_nonemb"}


@dataclass(frozen=True)
class CandidateLaw:
    """A law of the loss that may be the truth.

    Attributes:
        name: what it is called where several are compared.
        law: of the loss, in nats/token.
        params: its coefficients, natural scale.
        coefficients: where they come from: ``published``, or a fit's file.
        mapping: variable -> the column of a plan that it reads; by default its own name.
        factors: variable -> what that column is multiplied by; 1 by default.
        renamed: column of a fitted table, by a name of the user's own -> column of a plan.
        S: the sparsity of its own recommendation, where its law does not speak of any.
        draws: (B, P) of the coefficients, natural scale, in the law's order; empty without.
        fitted_on: column of a plan -> (least, most) of the runs behind the coefficients; 0 as the
            least where that is not known.
        source: of these runs: trained, imported or published.
        warnings: what limits the trust in the coefficients, in sentences.
        determined: whether the runs determine the coefficients. Regret under a law that is not
            determined is shown and does not count for the worst case.

    Raises:
        UserError: for a variable that a plan does not have.
    """

    name: str
    law: FittableLaw
    params: Mapping[str, float]
    coefficients: str = "published"
    mapping: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    S: float | None = None
    draws: Array = field(default_factory=lambda: np.empty((0, 0)))
    fitted_on: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: str = "published"
    warnings: tuple[str, ...] = ()
    determined: bool = True

    def __post_init__(self) -> None:
        for variable, column in self._reads.items():
            if column not in COLUMNS:
                mapped = f" as {column}" if column != variable else ""
                raise UserError(
                    f"{self.name}: the law reads {variable}{mapped}, and a plan has "
                    f"{', '.join(COLUMNS)} alone"
                )

    @property
    def _reads(self) -> dict[str, str]:
        return {v.name: self.mapping.get(v.name, v.name) for v in self.law.variables}

    @property
    def knows_sparsity(self) -> bool:
        """Tells whether the loss depends on parameters that a token does not pass."""
        return bool(_OF_SPARSITY & set(self._reads.values()))

    @cached_property
    def _draws(self) -> Array:
        """The draws (B, P) on the working scale."""
        rows = [dict(zip(self.law.names, row, strict=True)) for row in self.draws.tolist()]
        return np.array([self.law.vector(row) for row in rows])

    def columns(self, plans: Plans) -> dict[str, Array]:
        """Returns the law's variables; those of a plan without tokens stand for another's."""
        trained, columns = plans.D > 0, plans.columns()
        return {
            variable: self.factors.get(variable, 1.0)
            * np.where(trained, columns[column], columns[column][trained][:1].sum())
            for variable, column in self._reads.items()
        }

    def loss(self, plans: Plans) -> Array:
        """Returns the loss of plans at the estimates, nats/token; NaN where no token is trained."""
        one: Array = self._losses(self.law.vector(self.params)[None], plans)[0]
        return one

    def losses_of_draws(self, plans: Plans) -> Array:
        """Returns the losses of the plans by each draw, (B, *shape of the plans), nats/token."""
        return self._losses(self._draws, plans)

    def _losses(self, theta_BP: Array, plans: Plans) -> Array:
        values = self.columns(plans)
        together = max(1, _AT_ONCE // max(plans.D.size, 1))
        losses = [
            self.law.predict_batch(theta_BP[at : at + together], values)
            for at in range(0, len(theta_BP), together)
        ]
        return np.where(plans.D > 0, np.concatenate(losses), np.nan)

    def space(self, limits: Constraints) -> Space:
        """Returns the plans among which the law recommends one."""
        return Space(limits, () if self.S is None else (limits.nearest(self.S),))

    def best(self, limits: Constraints) -> Plans:
        """Returns the plan of the least loss that keeps to the limits."""
        return self.space(limits).least(self.loss)


def drawn_optima(law: CandidateLaw, limits: Constraints) -> tuple[Plans, Array]:
    """Returns each draw's best plan and its loss (B,), nats/token, within some 1e-5 nats.

    It is the best plan of a grid, moved to the vertex of parabolas through it.

    Raises:
        UserError: where a draw gives no loss for any plan.
    """
    space = law.space(limits)
    losses = law.losses_of_draws(space.plans(*space.grid(_SIZES)))
    losses = np.where(np.isnan(losses), np.inf, losses)
    B, n_u, n_v = losses.shape
    i, j = np.divmod(losses.reshape(B, -1).argmin(axis=1), n_v)
    draw = np.arange(B)
    least = losses[draw, i, j]
    if not np.isfinite(least).all():
        raise UserError(f"{law.name}: a draw of its coefficients gives no loss for any plan")
    before, after = np.maximum(i - 1, 0), np.minimum(i + 1, n_u - 1)
    shift_u, gain_u = _vertex(losses[draw, before, j], least, losses[draw, after, j])
    shift_v, gain_v = np.zeros(B), np.zeros(B)
    if space.continuous and n_v > 1:
        before, after = np.maximum(j - 1, 0), np.minimum(j + 1, n_v - 1)
        shift_v, gain_v = _vertex(losses[draw, i, before], least, losses[draw, i, after])
    inside_u, inside_v = (i > 0) & (i < n_u - 1), (j > 0) & (j < n_v - 1)
    size = (i + np.where(inside_u, shift_u, 0.0)) / (n_u - 1)
    sparsity = (j + np.where(inside_v, shift_v, 0.0)) / max(n_v - 1, 1)
    gain = np.where(inside_u, gain_u, 0.0) + np.where(inside_v, gain_v, 0.0)
    return space.plans(size, sparsity), least - gain


def _vertex(before: Array, here: Array, after: Array) -> tuple[Array, Array]:
    """Returns where the parabola through three equal steps has its vertex, and how much lower."""
    with np.errstate(invalid="ignore", divide="ignore"):
        bend = before - 2 * here + after
        shift = 0.5 * (before - after) / bend
        gain = 0.125 * (before - after) ** 2 / bend
    usable = np.isfinite(shift) & (bend > 0) & (np.abs(shift) <= 1)
    return np.where(usable, shift, 0.0), np.where(usable, gain, 0.0)
