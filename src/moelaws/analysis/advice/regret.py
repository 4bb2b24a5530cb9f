"""Candidate laws, each taken as the truth in turn, and the regret of a plan under each.

The losses of different laws do not compare, since tokenizers and texts differ. What compares is how
much worse a plan is than the best plan *by the same law*: in nats, and as the factor by which the
best plan needs less compute for the same loss.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from moelaws.analysis.advice.plans import COLUMNS, Constraints, Plans, Space
from moelaws.fitting.diagnostics import Calibration
from moelaws.fitting.prediction import reaches
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Array, FittableLaw, Variable
from moelaws.spec.errors import UserError

LEVEL = 0.9  # of the intervals over a fit's draws
_STEPS, _DECADES = 8, 6  # computes in a decade, and decades below the budget, of the least losses
_AT_ONCE = 2_000_000  # losses of draws that are held in memory at once
_SIZES = 61  # of the grid on which each draw's best plan is sought
_OF_SPARSITY = {"S", "S_shared", "A", "expansion", "N", "N_total", "N_total_nonemb"}


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
    S: float | None = None  # of its own recommendation, if the law says nothing of sparsity
    draws: Array = field(default_factory=lambda: np.empty((0, 0)))  # (B, P), natural scale
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
        rows = [dict(zip(self.law.names, row, strict=True)) for row in self.draws.tolist()]
        return np.array([self.law.vector(row) for row in rows])

    def columns(self, plans: Plans) -> dict[str, Array]:
        """Returns the law's variables; a plan without tokens gets those of another plan."""
        trained, columns = plans.D > 0, plans.columns()
        return {
            variable: self.factors.get(variable, 1.0)
            * np.where(trained, columns[column], columns[column][trained][:1].sum())
            for variable, column in self._reads.items()
        }

    def loss(self, plans: Plans) -> Array:
        """Returns the loss of plans at the estimates, nats/token; NaN where no token is trained."""
        return np.asarray(self._losses(self.law.vector(self.params)[None], plans)[0])

    def expected(self, plan: Plans) -> dict[str, float]:
        """Returns the loss of a new run of one plan, nats/token, and the ends of its interval.

        The ends are NaN unless a roll-out of the fit calibrates them.
        """
        value, reach = float(self.loss(plan)), math.nan
        if self.calibration is not None:
            columns = {name: np.atleast_1d(x) for name, x in self.columns(plan).items()}
            reach = float(reaches(self.calibration, columns, LEVEL)[1][0]) or math.nan
        return {"loss": value, "low": value * math.exp(-reach), "high": value * math.exp(reach)}

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
        return self.space(limits).least(self.loss)


def drawn_optima(law: CandidateLaw, limits: Constraints) -> tuple[Plans, Array]:
    """Returns each draw's best plan and its loss (B,) in nats/token, within about 1e-5.

    It is the best plan of a grid, moved to the vertex of parabolas through it. A UserError names
    the law if one of its draws gives no loss for any plan.
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
    """Returns the vertex, in steps, of parabolas through three values, and how much lower it is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        bend = before - 2 * here + after
        shift = 0.5 * (before - after) / bend
        gain = 0.125 * (before - after) ** 2 / bend
    usable = np.isfinite(shift) & (bend > 0) & (np.abs(shift) <= 1)
    return np.where(usable, shift, 0.0), np.where(usable, gain, 0.0)


@dataclass(frozen=True)
class Regret:
    """The regret of one plan under one law."""

    nats: float  # loss of the plan less the least loss within the constraints
    # The plan's compute over the least compute at which the best plan has the same loss; NaN if
    # above the six decades that are searched
    compute_factor: float
    low: float = math.nan  # of ``nats``, over the fit's draws; NaN without draws
    high: float = math.nan

    @property
    def worst(self) -> float:
        """Returns the nats that count as the worst case: the interval's end, if there is one."""
        return self.nats if np.isnan(self.high) else max(self.nats, self.high)

    def __str__(self) -> str:
        """Returns nats, the factor of compute and, where there are draws, the interval."""
        factor = "> 1e6" if np.isnan(self.compute_factor) else f"{self.compute_factor:.3g}"
        interval = "" if np.isnan(self.high) else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.nats:.3f} ({factor}x){interval}"


class Truth:
    """A candidate law that is taken as the truth: its best plan, and the regret of others."""

    def __init__(self, law: CandidateLaw, limits: Constraints) -> None:
        self.law, self.limits, self.best = law, limits, law.best(limits)
        self.least = float(law.loss(self.best))
        if not np.isfinite(self.least):
            raise UserError(f"{law.name} gives no loss for any plan of this budget")
        self.drawn = drawn_optima(law, limits) if len(law.draws) else None

    def regret(self, plan: Plans, spent: float) -> Regret:
        """Returns the regret of one plan that costs ``spent`` FLOPs."""
        excess, drawn = self._excess(plan)
        least = self._least_compute(self.least + float(excess))
        factor = math.nan if math.isnan(least) else max(1.0, spent / least)
        if drawn is None:
            return Regret(float(excess), factor)
        low, high = percentiles(drawn, LEVEL)
        return Regret(float(excess), factor, float(low), float(high))

    def worst(self, plans: Plans) -> Array:
        """Returns the regret of plans in nats; with draws, the upper end of its interval."""
        excess, drawn = self._excess(plans)
        if drawn is None:
            return excess
        return np.maximum(excess, np.quantile(drawn, 0.5 + LEVEL / 2, axis=0))

    def _excess(self, plans: Plans) -> tuple[Array, Array | None]:
        """Returns the regret at the estimates and, if there are draws, at each draw (B, ...)."""
        excess = np.maximum(self.law.loss(plans) - self.least, 0.0)
        if self.drawn is None:
            return excess, None
        losses, (_, least) = self.law.losses_of_draws(plans), self.drawn
        return excess, np.maximum(losses - least.reshape((-1,) + (1,) * (losses.ndim - 1)), 0.0)

    @cached_property
    def _ladder(self) -> tuple[Array, Array]:
        """Returns log10 of computes over the budget, up to 0, and the least loss at each."""
        steps, losses = np.arange(-_STEPS * _DECADES, 1) / _STEPS, []
        for step in steps:
            limits = replace(self.limits, compute=self.limits.compute * 10.0**step)
            try:
                space = self.law.space(limits)
                losses.append(float(np.nanmin(self.law.loss(space.plans(*space.grid())))))
            except UserError:  # serving takes the whole of so small a budget
                losses.append(math.inf)
        return steps, np.append(np.minimum.accumulate(losses)[:-1], self.least)

    def _least_compute(self, loss: float) -> float:
        """Returns the least compute (FLOPs) at which the best plan has ``loss`` or less, or NaN."""
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
        if not laws:
            raise UserError("no candidate law has coefficients; name a law or a fit")
        self.limits, self.truths = limits, tuple(Truth(law, limits) for law in laws)

    @property
    def laws(self) -> tuple[CandidateLaw, ...]:
        return tuple(truth.law for truth in self.truths)

    @property
    def counting(self) -> list[str]:
        """Returns the names of laws that count as worst cases: determined ones, else all."""
        determined = [law.name for law in self.laws if law.determined]
        return determined or [law.name for law in self.laws]

    def regrets(self, plan: Plans, spent: float | None = None) -> dict[str, Regret]:
        """Returns one plan's regret by law; ``spent`` is its cost, by default by sizes."""
        spent = float(self.limits.cost(plan)) if spent is None else spent
        return {truth.law.name: truth.regret(plan, spent) for truth in self.truths}

    def worst(self, plans: Plans) -> Array:
        """Returns the largest ``Truth.worst`` of the laws that count; NaN where one is NaN."""
        worst = [truth.worst(plans) for truth in self.truths if truth.law.name in self.counting]
        return np.asarray(np.max(worst, axis=0))

    def robust(self) -> Plans:
        return Space(self.limits).least(self.worst)
