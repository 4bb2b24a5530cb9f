"""Regret: what a plan costs where a law that did not choose it is the truth.

The losses of different laws do not compare: tokenizers and texts differ. What compares is how much
worse a plan is than the best plan *by the same law*: in nats, and as the factor of compute that the
best plan needs less for the same loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from moelaws.analysis.advice.candidates import CandidateLaw, drawn_optima
from moelaws.analysis.advice.plans import Constraints, Plans, Space
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError

LEVEL = 0.9  # of the intervals over a fit's draws
_STEPS, _DECADES = 8, 6  # computes a decade, and decades below the budget, of the best losses


@dataclass(frozen=True)
class Regret:
    """What one plan costs under one law."""

    nats: float  # loss of the plan less the least loss within the constraints
    # What the plan spends over the least compute that gives its loss by the best plan; NaN beyond
    # the six decades that are looked at.
    compute_factor: float
    low: float = math.nan  # of ``nats``, over the fit's draws; NaN without draws
    high: float = math.nan

    @property
    def worst(self) -> float:
        """Returns what counts where the worst case is sought: the interval's end, if any."""
        return self.nats if np.isnan(self.high) else max(self.nats, self.high)

    def __str__(self) -> str:
        """Returns nats, the factor of compute and, where there are draws, the interval."""
        factor = "> 1e6" if np.isnan(self.compute_factor) else f"{self.compute_factor:.3g}"
        interval = "" if np.isnan(self.high) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.nats:.3f} ({factor}x){interval}"


class Truth:
    """A candidate law that is taken as the truth: its best plan, and what other plans lose."""

    def __init__(self, law: CandidateLaw, limits: Constraints) -> None:
        """Finds the law's best plan within the ``limits``.

        Raises:
            UserError: where it has none.
        """
        self.law, self.limits, self.best = law, limits, law.best(limits)
        self.least = float(law.loss(self.best))
        if not np.isfinite(self.least):
            raise UserError(f"{law.name} gives no loss for any plan of this budget")
        self.drawn = drawn_optima(law, limits) if len(law.draws) else None

    def regret(self, plan: Plans, spent: float) -> Regret:
        """Returns what one plan costs, which spends so many FLOPs."""
        excess, drawn = self._excess(plan)
        least = self._least_compute(self.least + float(excess))
        factor = math.nan if math.isnan(least) else max(1.0, spent / least)
        if drawn is None:
            return Regret(float(excess), factor)
        low, high = percentiles(drawn, LEVEL)
        return Regret(float(excess), factor, float(low), float(high))

    def worst(self, plans: Plans) -> Array:
        """Returns the regret of plans in nats, of a law with draws the end of its interval."""
        excess, drawn = self._excess(plans)
        if drawn is None:
            return excess
        return np.maximum(excess, np.quantile(drawn, 0.5 + LEVEL / 2, axis=0))

    def _excess(self, plans: Plans) -> tuple[Array, Array | None]:
        """Returns regret at the estimates and, where there are draws, theirs (B, ...)."""
        excess = np.maximum(self.law.loss(plans) - self.least, 0.0)
        if self.drawn is None:
            return excess, None
        losses, (_, least) = self.law.losses_of_draws(plans), self.drawn
        return excess, np.maximum(losses - least.reshape((-1,) + (1,) * (losses.ndim - 1)), 0.0)

    @cached_property
    def _ladder(self) -> tuple[Array, Array]:
        """log10 of computes up to the budget, over it, and the least loss at each, falling."""
        steps, losses = np.arange(-_STEPS * _DECADES, 1) / _STEPS, []
        for step in steps:
            limits = replace(self.limits, compute=self.limits.compute * 10.0**step)
            try:
                space = self.law.space(limits)
                losses.append(float(np.nanmin(self.law.loss(space.plans(*space.grid())))))
            except UserError:  # serving takes so small a budget whole
                losses.append(math.inf)
        return steps, np.append(np.minimum.accumulate(losses)[:-1], self.least)

    def _least_compute(self, loss: float) -> float:
        """Returns the least compute (FLOPs) at which the best plan has ``loss`` or less.

        It is interpolated between eighths of a decade; NaN beyond those that are looked at.
        """
        steps, least = self._ladder
        first = int(np.argmax(least <= loss))  # on a plateau more compute gives nothing
        if first == 0:
            return math.nan
        above, below = least[first - 1], least[first]
        weight = (above - loss) / (above - below) if np.isfinite(above) else 1.0
        step = steps[first - 1] + weight * (steps[first] - steps[first - 1])
        return float(self.limits.compute * 10.0**step)


class Minimax:
    """The candidate laws, each as the truth, and the plan of the least worst-case regret."""

    def __init__(self, laws: Sequence[CandidateLaw], limits: Constraints) -> None:
        """Finds each law's best plan within the ``limits``.

        Raises:
            UserError: where there is no law, or one has no best plan.
        """
        if not laws:
            raise UserError("no candidate law has coefficients; name a law or a fit")
        self.limits, self.truths = limits, tuple(Truth(law, limits) for law in laws)

    @property
    def laws(self) -> tuple[CandidateLaw, ...]:
        """Returns the candidate laws."""
        return tuple(truth.law for truth in self.truths)

    @property
    def counting(self) -> list[int]:
        """Returns which laws count for the worst case: those determined, or all if none is."""
        determined = [i for i, law in enumerate(self.laws) if law.determined]
        return determined or list(range(len(self.laws)))

    def regrets(self, plan: Plans, spent: float | None = None) -> list[Regret]:
        """Returns what one plan costs under each law.

        ``spent`` are its FLOPs, by default 6 N_active D and those of serving.
        """
        spent = float(self.limits.cost(plan)) if spent is None else spent
        return [truth.regret(plan, spent) for truth in self.truths]

    def worst(self, plans: Plans) -> Array:
        """Returns the largest regret of plans over the laws that count, in nats.

        A law with draws counts by the upper end of its interval. NaN where a law gives no loss.
        """
        return np.asarray(np.max([self.truths[i].worst(plans) for i in self.counting], axis=0))

    def robust(self) -> Plans:
        """Returns the plan of the least worst-case regret."""
        return Space(self.limits).least(self.worst)
