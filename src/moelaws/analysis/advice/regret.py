"""Candidate laws, each taken as the truth in turn, and the regret of a plan under each.

The losses of different laws do not compare, since tokenizers and texts differ. What compares is how
much worse a plan is than the best plan *by the same law*: in nats, and as the factor by which the
best plan needs less compute for the same loss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moelaws.analysis.advice.plans import COLUMNS, Plans
from moelaws.analysis.advice.shapes import Space
from moelaws.fitting.diagnostics import Calibration
from moelaws.fitting.prediction import reaches, vectors
from moelaws.fitting.quantiles import percentiles, stretched
from moelaws.laws.base import Array, FittableLaw, Mask, Variable
from moelaws.spec.errors import UserError

LEVEL = 0.9  # of the intervals over a fit's draws
FARTHEST = 2.0  # decades beyond its runs, in any variable, from which on a law judges nothing
ROUNDED = 0.05  # decades up to which two of them are two
_STEPS, _DECADES = 8, 4  # computes in a decade, and decades below the budget, of the least losses
_AT_ONCE = 2_000_000  # losses of draws that are held in memory at once
_OF_SPARSITY = {"S", "S_shared", "A", "expansion", "N", "N_total", "N_total_nonemb", "N_effective"}


def is_read(variable: Variable, column: str) -> bool:
    """Tells whether a law takes the variable from a plan; what no plan has stays at its default."""
    return variable.default is None or column in COLUMNS


@dataclass(frozen=True)
class CandidateLaw:
    """A law of the loss that may be the truth, and whose variables a plan has.

    The regret under a law that its runs do not determine is shown, but is no worst case.
    """

    name: str
    law: FittableLaw  # of the loss, in nats/token
    params: Mapping[str, float]  # natural scale
    coefficients: str = "published"  # their source: published, or a fit's file
    mapping: Mapping[str, str] = field(default_factory=dict)  # variable -> a plan's other column
    factors: Mapping[str, float] = field(default_factory=dict)  # variable -> the column's factor
    renamed: Mapping[str, str] = field(default_factory=dict)  # user's own column -> a plan's
    # The sparsity of its own recommendation, if the law says nothing of sparsity.
    S: float | None = None
    draws: Array = field(default_factory=lambda: np.empty((0, 0)))  # (B, P), natural scale
    stretch: float = 1.0  # of the losses of draws (``quantiles.stretched``)
    # Column of a plan -> least and largest value of the runs behind the coefficients; 0 if unknown
    fitted_on: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: str = "published"  # of these runs: published, trained or imported
    warnings: tuple[str, ...] = ()  # what limits the trust in the coefficients, in sentences
    determined: bool = True  # whether the runs determine the coefficients
    calibration: Calibration | None = None  # of the fit, for losses beyond its runs

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
        each = ((v, self.mapping.get(v.name, v.name)) for v in self.law.variables)
        return {v.name: column for v, column in each if is_read(v, column)}

    @property
    def held(self) -> dict[str, float | None]:
        """Returns the variables that no plan has, and the law's defaults for them."""
        return {v.name: v.default for v in self.law.variables if v.name not in self._reads}

    @property
    def knows_sparsity(self) -> bool:
        """Tells whether the loss depends on parameters that a token does not pass."""
        return bool(_OF_SPARSITY & set(self._reads.values()))

    @cached_property
    def _draws(self) -> Array:
        """Returns the draws (B, P) on the working scale."""
        return vectors(self.law, self.draws)

    def columns(self, plans: Plans) -> dict[str, Array]:
        """Returns the law's variables; a plan without tokens gets those of another plan."""
        trained, columns = plans.D > 0, plans.columns()
        return {
            variable: self.factors.get(variable, 1.0)
            * np.where(trained, columns[column], columns[column][trained][:1].sum())
            for variable, column in self._reads.items()
        }

    def judges(self, plans: Plans) -> Mask:
        """Tells which plans are trained and not too far beyond the law's runs in any variable."""
        far = [x > FARTHEST + ROUNDED for x in plans.distances(self.fitted_on).values()]
        return (plans.D > 0) & ~np.any(far, axis=0) if far else plans.D > 0

    def loss(self, plans: Plans) -> Array:
        """Returns the loss of plans at the estimates, nats/token; NaN where it judges nothing."""
        return np.asarray(self._losses(self.law.vector(self.params)[None], plans)[0])

    def expected(self, plan: Plans) -> dict[str, float]:
        """Returns the loss of a new run of one plan, nats/token, and the ends of its interval.

        The ends are NaN unless a roll-out of the fit calibrates them.
        """
        value, reach = float(self.loss(plan)), math.nan
        if self.calibration:
            _, new = reaches(self.calibration, self.columns(plan), LEVEL)
            reach = float(new) or math.nan
        return {"loss": value, "low": value * math.exp(-reach), "high": value * math.exp(reach)}

    def losses_of_draws(self, plans: Plans) -> Array:
        """Returns the losses of the plans by each draw, (B, *shape of the plans), nats/token."""
        return stretched(self._losses(self._draws, plans), self.loss(plans), self.stretch)

    def _losses(self, theta_BP: Array, plans: Plans) -> Array:
        values = self.columns(plans)
        together = max(1, _AT_ONCE // max(plans.D.size, 1))
        losses = [
            self.law.predict_batch(theta_BP[at : at + together], values)
            for at in range(0, len(theta_BP), together)
        ]
        return np.where(self.judges(plans), np.concatenate(losses), np.nan)

    def best(self, space: Space) -> int:
        """Returns the index of the model of least loss among those of the law's own sparsity.

        A UserError says that the law judges none of them.
        """
        losses = np.where(space.of_sparsity(self.S), self.loss(space.plans), np.nan)
        if np.isnan(losses).all():
            raise UserError(f"{self.name} gives no loss for any model of this budget")
        return int(np.nanargmin(losses))


def drawn_optima(law: CandidateLaw, space: Space) -> tuple[Plans, Array]:
    """Returns each draw's best model, trained, and its loss (B,) in nats/token.

    A UserError names the law if one of its draws gives no loss for any model.
    """
    losses = law.losses_of_draws(space.plans)
    losses = np.where(np.isnan(losses) | ~space.of_sparsity(law.S), np.inf, losses)
    best = losses.argmin(axis=1)
    least = losses[np.arange(len(best)), best]
    if not np.isfinite(least).all():
        raise UserError(f"{law.name}: a draw of its coefficients gives no loss for any model")
    return space.plans.at(best), least


@dataclass(frozen=True)
class Regret:
    """The regret of one plan under one law."""

    nats: float  # loss of the plan less the least loss within the constraints; NaN if not judged
    # The plan's compute over the least compute at which the best plan has the same loss; NaN if
    # above the four decades that are searched
    compute_factor: float
    low: float = math.nan  # of ``nats``, over the fit's draws; NaN without draws
    high: float = math.nan

    @property
    def worst(self) -> float:
        """Returns the nats that count as the worst case: the interval's end, if there is one."""
        return self.nats if np.isnan(self.high) else float(np.maximum(self.nats, self.high))

    def __str__(self) -> str:
        """Returns nats, the factor of compute and, where there are draws, the interval."""
        if np.isnan(self.nats):
            return "judges nothing"
        factor = "> 1e4" if np.isnan(self.compute_factor) else f"{self.compute_factor:.3g}"
        interval = "" if np.isnan(self.high) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.nats:.3f} ({factor}x){interval}"


class Truth:
    """A candidate law that is taken as the truth: its best model, and the regret of others."""

    def __init__(self, law: CandidateLaw, space: Space) -> None:
        self.law, self.space, self.at = law, space, law.best(space)
        self.best = space.plans.at(self.at)
        self.least = float(law.loss(self.best))
        self.drawn = drawn_optima(law, space) if len(law.draws) else None

    def regret(self, plan: Plans, spent: float) -> Regret:
        """Returns the regret of one plan that costs ``spent`` FLOPs."""
        excess, drawn = self._excess(plan)
        nats = float(np.maximum(excess, 0))
        least = self._least_compute(self.least + nats)
        factor = math.nan if math.isnan(least) else max(1.0, spent / least)
        if drawn is None:
            return Regret(nats, factor)
        low, high = percentiles(np.maximum(drawn, 0), LEVEL)
        return Regret(nats, factor, float(low), float(high))

    def worst(self, plans: Plans) -> Array:
        """Returns the regret of plans in nats; with draws, the upper end of its interval.

        It is below 0 where a model of another sparsity than the law's own has a lower loss.
        """
        excess, drawn = self._excess(plans)
        if drawn is None:
            return excess
        return np.maximum(excess, np.quantile(drawn, 0.5 + LEVEL / 2, axis=0))

    def _excess(self, plans: Plans) -> tuple[Array, Array | None]:
        """Returns the regret at the estimates and, if there are draws, at each draw (B, ...)."""
        excess = self.law.loss(plans) - self.least
        if self.drawn is None:
            return excess, None
        losses, (_, least) = self.law.losses_of_draws(plans), self.drawn
        return excess, losses - least.reshape((-1,) + (1,) * (losses.ndim - 1))

    @cached_property
    def _ladder(self) -> tuple[Array, Array]:
        """Returns log10 of computes over the budget, up to 0, and the least loss at each."""
        steps, own = np.arange(-_STEPS * _DECADES, 1) / _STEPS, self.space.of_sparsity(self.law.S)
        losses = []
        for step in steps[:-1]:
            plans = self.space.at(self.space.limits.compute * 10.0**step)
            judged = own & self.law.judges(plans)  # none, maybe, of so small a budget
            losses.append(float(self.law.loss(plans.at(judged)).min()) if judged.any() else np.inf)
        return steps, np.append(np.minimum.accumulate(losses), self.least)

    def _least_compute(self, loss: float) -> float:
        """Returns the least compute (FLOPs) at which the best model has ``loss``, or NaN."""
        steps, least = self._ladder
        # On a plateau more compute gives nothing, so the first compute with this loss is taken.
        first = int(np.argmax(least <= loss))
        if first == 0:
            return math.nan
        above, below = least[first - 1], least[first]
        weight = (above - loss) / (above - below) if np.isfinite(above) else 1.0
        step = steps[first - 1] + weight * (steps[first] - steps[first - 1])
        return float(self.space.limits.compute * 10.0**step)


class Minimax:
    """The candidate laws, each as the truth, and the model of the least worst-case regret."""

    def __init__(self, laws: Sequence[CandidateLaw], space: Space) -> None:
        if not laws:
            raise UserError("no candidate law has coefficients; name a law or a fit")
        self.space, self.truths = space, tuple(Truth(law, space) for law in laws)

    @property
    def laws(self) -> tuple[CandidateLaw, ...]:
        return tuple(truth.law for truth in self.truths)

    @property
    def counting(self) -> list[str]:
        """Returns the names of laws that count as worst cases: determined ones, else all."""
        determined = [law.name for law in self.laws if law.determined]
        return determined or [law.name for law in self.laws]

    def regrets(self, plan: Plans, spent: float) -> dict[str, Regret]:
        """Returns the regret by law of one plan, which costs ``spent`` FLOPs."""
        return {truth.law.name: truth.regret(plan, spent) for truth in self.truths}

    def worst(self, plans: Plans) -> Array:
        """Returns the largest ``Truth.worst`` of the laws that count; NaN where one is NaN."""
        worst = [truth.worst(plans) for truth in self.truths if truth.law.name in self.counting]
        return np.asarray(np.max(worst, axis=0))

    def robust(self) -> int:
        """Returns the index of the model whose worst regret is least, which all laws judge."""
        worst = self.worst(self.space.plans)
        if np.isnan(worst).all():
            raise UserError("no model of this budget is near enough to the runs of all laws")
        return int(np.nanargmin(worst))
