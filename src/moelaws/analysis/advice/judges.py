"""Judges: laws with coefficients, each of which is taken in turn as the truth.

A judge tells the loss of any plan, and its own best plan within the constraints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moelaws.analysis.advice.plans import COLUMNS, Constraints, Plans, Space
from moelaws.laws.base import Array, FittableLaw
from moelaws.spec.errors import UserError

_AT_ONCE = 2_000_000  # losses of draws that are held at once
_SIZES = 61  # of the grid on which each draw's best plan is sought


@dataclass(frozen=True)
class Judge:
    """A law of the loss that is taken as the truth.

    Attributes:
        name: what it is called where several are compared.
        law: of the loss, in nats/token.
        params: its coefficients, natural scale.
        coefficients: where they come from: ``published``, or a fit's file.
        mapping: variable -> the column of a plan that it reads; its own name unless told.
        S: the sparsity of its own recommendation, where its law does not speak of any.
        draws: (B, P) of the coefficients, natural scale, in the law's order; empty without.
        fitted_on: column of a plan -> (least, most) of the runs behind the coefficients; 0 as the
            least where that is not known.
        source: of these runs: trained, imported or published.
        warnings: what limits the trust in the coefficients, in sentences.

    Raises:
        UserError: for a variable that a plan does not tell.
    """

    name: str
    law: FittableLaw
    params: Mapping[str, float]
    coefficients: str = "published"
    mapping: Mapping[str, str] = field(default_factory=dict)
    S: float | None = None
    draws: Array = field(default_factory=lambda: np.empty((0, 0)))
    fitted_on: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: str = "published"
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for variable, column in self._reads.items():
            if column not in COLUMNS:
                raise UserError(
                    f"{self.name}: the law needs {variable}, which is mapped to {column}, and a "
                    f"plan tells {', '.join(COLUMNS)} alone"
                )

    @property
    def _reads(self) -> dict[str, str]:
        return {v.name: self.mapping.get(v.name, v.name) for v in self.law.variables}

    @cached_property
    def working_draws(self) -> Array:
        """Returns the draws (B, P) on the working scale."""
        rows = [dict(zip(self.law.names, row, strict=True)) for row in self.draws.tolist()]
        return np.array([self.law.vector(row) for row in rows])

    def loss(self, plans: Plans) -> Array:
        """Returns the loss of plans at the estimates, nats/token; NaN where no token is trained."""
        one: Array = self._losses(self.law.vector(self.params)[None], plans)[0]
        return one

    def losses_of_draws(self, plans: Plans) -> Array:
        """Returns the losses of the plans by each draw, (B, *shape of the plans), nats/token."""
        return self._losses(self.working_draws, plans)

    def columns(self, plans: Plans) -> dict[str, Array]:
        """Returns the law's variables; those of a plan without tokens stand for another's."""
        trained, columns = plans.D > 0, plans.columns()
        return {
            variable: np.where(trained, columns[column], columns[column][trained][:1].sum())
            for variable, column in self._reads.items()
        }

    def _losses(self, theta_BP: Array, plans: Plans) -> Array:
        trained, values = plans.D > 0, self.columns(plans)
        together = max(1, _AT_ONCE // max(plans.D.size, 1))
        losses = [
            self.law.predict_batch(theta_BP[at : at + together], values)
            for at in range(0, len(theta_BP), together)
        ]
        return np.where(trained, np.concatenate(losses), np.nan)

    def space(self, limits: Constraints, compute: float | None = None) -> Space:
        """Returns the plans among which the law recommends one."""
        own = () if self.S is None else (limits.nearest(self.S),)
        return Space(limits, own, compute)

    def best(self, limits: Constraints, compute: float | None = None) -> Plans:
        """Returns the plan of the least loss that keeps to the limits, at ``compute`` FLOPs.

        ``compute`` stands in for the limits' own.
        """
        return self.space(limits, compute).least(self.loss)

    def beyond(self, plan: Plans) -> dict[str, float]:
        """Returns how many decades a plan lies beyond the fitted runs, by column.

        Of a sparsity they are decades of 1 / (1 - S). Columns within the runs are left out.
        """
        columns = plan.columns()
        distances = {}
        for name, ends in self.fitted_on.items():
            x, low, high = (_log10(name, value) for value in (float(columns[name]), *ends))
            if (distance := max(low - x, x - high)) > 1e-3:
                distances[name] = distance
        return distances


def _log10(column: str, value: float) -> float:
    if column == "S":
        return -math.log10(1 - value)
    return math.log10(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class DrawnOptima:
    """The best plan of each of a judge's draws, and its loss (B,), nats/token."""

    loss: Array
    plans: Plans


def drawn_optima(judge: Judge, limits: Constraints, others: Plans) -> DrawnOptima:
    """Returns each draw's best plan among those of a grid and the plans ``others`` (n,).

    A grid's best plan is within some 1e-4 nats of the best there is.
    """
    space = judge.space(limits)
    grid = space.plans(*(position.ravel() for position in space.grid(_SIZES)))
    plans = grid.joined(others)
    losses = judge.losses_of_draws(plans)
    index = np.where(np.isnan(losses), np.inf, losses).argmin(axis=1)
    return DrawnOptima(losses[np.arange(len(index)), index], plans.at(index))
