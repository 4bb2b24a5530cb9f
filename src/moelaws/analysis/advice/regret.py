"""Regret: what a plan costs where a law that did not choose it is the truth.

The losses of different laws do not compare: tokenizers and texts differ. What compares is how much
worse a plan is than the best plan *by the same law*: in nats, and as the factor of compute that the
best plan needs less for the same loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moelaws.analysis.advice.judges import DrawnOptima, Judge, drawn_optima
from moelaws.analysis.advice.plans import Constraints, Plans, Space
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError

LEVEL = 0.9  # of the intervals over a fit's draws
_STEPS, _DECADES = 8, 6  # computes a decade, and decades below the budget, of the best losses


@dataclass(frozen=True)
class Regret:
    """What one plan costs under one law.

    Attributes:
        nats: loss of the plan less the least loss within the constraints.
        compute_factor: what the plan spends over the least compute that gives its loss by the
            best plan; NaN beyond the six decades that are looked at.
        low, high: of ``nats`` over the fit's draws; NaN without draws.
    """

    nats: float
    compute_factor: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def worst(self) -> float:
        """Returns what counts where the worst case is sought: the interval's end, if any."""
        return self.nats if np.isnan(self.high) else max(self.nats, self.high)

    def __str__(self) -> str:
        """Returns nats, the factor of compute and, where there are draws, the interval."""
        factor = "> 1e6" if np.isnan(self.compute_factor) else f"{self.compute_factor:.3g}"
        interval = "" if np.isnan(self.high) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.nats:.3f} ({factor}x){interval}"


class Court:
    """The judges with their best plans: what regret is measured from."""

    def __init__(self, judges: Sequence[Judge], limits: Constraints) -> None:
        """Finds each judge's best plan within the ``limits``.

        Raises:
            UserError: where there is no judge, or one has no best plan.
        """
        if not judges:
            raise UserError("no law has coefficients to judge by; name a law or a fit")
        self.judges, self.limits = tuple(judges), limits
        self.best = [judge.best(limits) for judge in judges]
        self.least = [float(j.loss(plan)) for j, plan in zip(judges, self.best, strict=True)]
        for judge, loss in zip(judges, self.least, strict=True):
            if not np.isfinite(loss):
                raise UserError(f"{judge.name} gives no loss for any plan of this budget")
        self.drawn: list[DrawnOptima | None] = [
            drawn_optima(judge, limits) if len(judge.draws) else None for judge in judges
        ]
        self._ladders = [self._ladder(judge) for judge in judges]

    @property
    def counting(self) -> list[int]:
        """Returns which judges count for the worst case: those determined, or all if none is."""
        determined = [i for i, judge in enumerate(self.judges) if judge.determined]
        return determined or list(range(len(self.judges)))

    def regrets(self, plan: Plans, spent: float | None = None) -> list[Regret]:
        """Returns what one plan costs under each judge.

        ``spent`` are its FLOPs, 6 N_active D and those of serving unless told.
        """
        spent = float(self.limits.cost(plan)) if spent is None else spent
        return [self._regret(i, plan, spent) for i in range(len(self.judges))]

    def worst(self, plans: Plans) -> Array:
        """Returns the largest regret of plans over the judges that count, in nats.

        A judge with draws counts by the upper end of its interval. NaN where a judge gives no loss.
        """
        return np.asarray(np.max([self._worst(i, plans) for i in self.counting], axis=0))

    def robust(self) -> Plans:
        """Returns the plan of the least worst-case regret."""
        return Space(self.limits).least(self.worst)

    def _excess(self, i: int, plans: Plans) -> tuple[Array, Array | None]:
        """Returns regret at the estimates and, where there are draws, theirs (B, ...)."""
        excess = np.maximum(self.judges[i].loss(plans) - self.least[i], 0.0)
        drawn = self.drawn[i]
        if drawn is None:
            return excess, None
        losses = self.judges[i].losses_of_draws(plans)
        shape = (-1,) + (1,) * (losses.ndim - 1)
        return excess, np.maximum(losses - drawn.loss.reshape(shape), 0.0)

    def _worst(self, i: int, plans: Plans) -> Array:
        excess, drawn = self._excess(i, plans)
        if drawn is None:
            return excess
        return np.maximum(excess, np.quantile(drawn, 0.5 + LEVEL / 2, axis=0))

    def _regret(self, i: int, plan: Plans, spent: float) -> Regret:
        excess, drawn = self._excess(i, plan)
        least = self._least_compute(i, self.least[i] + float(excess))
        factor = math.nan if math.isnan(least) else max(1.0, spent / least)
        if drawn is None:
            return Regret(float(excess), factor)
        low, high = percentiles(drawn, LEVEL)
        return Regret(float(excess), factor, float(low), float(high))

    def _ladder(self, judge: Judge) -> tuple[Array, Array]:
        """Returns log10 of computes up to the budget, and the least loss at each, falling."""
        steps = np.arange(-_STEPS * _DECADES, 1) / _STEPS
        losses = []
        for step in steps:
            try:
                space = judge.space(self.limits, self.limits.compute * 10.0**step)
                losses.append(float(np.nanmin(judge.loss(space.plans(*space.grid())))))
            except UserError:  # serving takes so small a budget whole
                losses.append(math.inf)
        return steps, np.minimum.accumulate(losses)

    def _least_compute(self, i: int, loss: float) -> float:
        """Returns the least compute (FLOPs) at which the best plan has ``loss`` or less.

        It is interpolated between eighths of a decade; NaN beyond those that are looked at.
        """
        steps, least = self._ladders[i]
        least = np.append(least[:-1], self.least[i])
        first = int(np.argmax(least <= loss))  # on a plateau more compute gives nothing
        if first == 0:
            return float("nan")
        above, below = least[first - 1], least[first]
        share = (above - loss) / (above - below) if np.isfinite(above) else 1.0
        step = steps[first - 1] + share * (steps[first] - steps[first - 1])
        return float(self.limits.compute * 10.0**step)
