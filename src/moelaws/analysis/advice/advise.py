"""What to train with a budget: what each law recommends, and what each choice may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moelaws.analysis.advice.build import Configuration, Targets, built
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.plans import USUAL_G, Constraints, Plans
from moelaws.analysis.advice.regret import LEVEL, Court, Regret
from moelaws.analysis.advice.setters import Adviser, Setter
from moelaws.fitting.quantiles import percentiles
from moelaws.spec.advice import Shape
from moelaws.spec.errors import UserError

USUAL_R = 1.0  # where no law says r
ROBUST, CONFIGURATION, YOURS = "robust", "configuration", "your plan"


@dataclass(frozen=True)
class Recommendation:
    """A plan, and what it costs under each judge.

    Attributes:
        name: the law's that recommends it, or what else the plan is.
        plan: the plan.
        regrets: under each judge, in their order.
        intervals: quantity -> (low, high) over the draws of the law's fit; empty without draws.
        beyond: judge -> quantity -> decades beyond what that judge's coefficients were fitted on.
        at_limits: constraints that the plan has come to, in words.
        worst: the largest regret over the judges that count, nats/token: the interval's upper end
            where there are draws.
    """

    name: str
    plan: Plans
    regrets: list[Regret]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    beyond: dict[str, dict[str, float]] = field(default_factory=dict)
    at_limits: list[str] = field(default_factory=list)
    worst: float = math.nan


@dataclass(frozen=True)
class Advice:
    """The answer.

    Attributes:
        court: the laws that were taken as the truth in turn, with the constraints.
        recommendations: of the judges and the advisers, in their order.
        robust: the plan of the least worst-case regret.
        configuration: the model to build, near the robust plan; None where none can be.
        as_configured: its own row of regrets.
        not_built: why there is no configuration.
        compared: the user's own plan, if any.
        set: variable -> what its law sets it to at the robust plan.
        far: law that sets or advises and judges nothing -> decades beyond its runs, by column.
        left_out: law -> why it takes no part.
    """

    court: Court
    recommendations: list[Recommendation]
    robust: Recommendation
    configuration: Configuration | None
    as_configured: Recommendation | None
    not_built: str
    compared: Recommendation | None
    set: dict[str, float]
    far: dict[str, dict[str, float]]
    left_out: dict[str, str]

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Returns the laws that were taken as the truth in turn."""
        return self.court.judges

    @property
    def limits(self) -> Constraints:
        """Returns the constraints."""
        return self.court.limits

    @property
    def rows(self) -> list[Recommendation]:
        """Returns all plans with their regrets: laws', robust, configuration, the user's own."""
        last = (self.robust, self.as_configured, self.compared)
        return [*self.recommendations, *(row for row in last if row)]

    @property
    def all_extrapolate(self) -> bool:
        """Tells whether the robust plan lies beyond what every judge was fitted on."""
        return all(self.robust.beyond.get(judge.name) for judge in self.judges)


def advise(
    judges: Sequence[Judge],
    limits: Constraints,
    shape: Shape,
    *,
    advisers: Sequence[Adviser] = (),
    setters: Sequence[Setter] = (),
    compare: Plans | None = None,
    farthest: float = math.inf,
) -> Advice:
    """Returns what the laws recommend within the limits, and the regret of each choice.

    Args:
        judges: laws of the loss, each taken as the truth in turn.
        limits: the budget and what else a plan keeps to.
        shape: what configurations have in common.
        advisers: laws of the tokens alone, which recommend and judge nothing.
        setters: laws that set one variable at the robust plan; those of ``G`` and ``r_star`` set
            granularity and active experts of the configuration where the limits leave them free.
        compare: a plan of the user's own.
        farthest: decades by which a judge may extrapolate to its own best plan; one that would go
            farther takes no part, as long as two are left and one of them knows of sparsity.

    Raises:
        UserError: where no plan keeps to the limits, or the user's own costs more than the budget.
    """
    near, left_out = _near(judges, limits, farthest)
    court = Court(near, limits)
    recommendations = [_of_judge(court, i) for i in range(len(court.judges))]
    far = {}
    for adviser in advisers:
        try:
            row = _row(court, adviser.name, adviser.plan(limits))
            recommendations.append(row)
            far[adviser.name] = row.plan.beyond(adviser.fitted_on)
        except UserError as error:
            left_out[adviser.name] = str(error)
    robust = _row(court, ROBUST, court.robust())
    values = {setter.variable: setter.value(robust.plan) for setter in setters}
    values = {name: x for name, x in values.items() if not np.isnan(x)}
    targets = Targets(limits.G or values.get("G", USUAL_G), values.get("r_star", USUAL_R))
    configuration, as_configured, not_built = _configured(court, robust.plan, shape, targets)
    if as_configured and as_configured.plan.S == 0:  # no law of experts sets anything of it
        values = {name: x for name, x in values.items() if name not in ("G", "r_star")}
    far |= {s.law.id: robust.plan.beyond(s.fitted_on) for s in setters if s.variable in values}
    return Advice(
        court,
        recommendations,
        robust,
        configuration,
        as_configured,
        not_built,
        None if compare is None else _row(court, YOURS, _affordable(compare, limits)),
        values,
        {name: distances for name, distances in far.items() if distances},
        left_out,
    )


def _configured(
    court: Court, plan: Plans, shape: Shape, targets: Targets
) -> tuple[Configuration | None, Recommendation | None, str]:
    """Returns the configuration near a plan with its row, or why there is none."""
    try:
        configuration, own = built(court, plan, shape, targets)
    except UserError as error:
        return None, None, str(error)
    served = 1 + court.limits.served_tokens / 3 / configuration.tokens
    row = _row(court, CONFIGURATION, own, configuration.flops["all"] * served)
    return configuration, row, ""


def _near(
    judges: Sequence[Judge], limits: Constraints, farthest: float
) -> tuple[list[Judge], dict[str, str]]:
    """Returns the judges that extrapolate no farther, and why others take no part.

    All take part where less than two would be left, or none of them knew of sparsity: a law that
    cannot speak of it must not decide on it alone.
    """
    near, left_out = [], {}
    for judge in judges:
        distances = judge.best(limits).beyond(judge.fitted_on)
        name = max(distances, key=distances.__getitem__, default="")
        if distances.get(name, 0.0) <= farthest:
            near.append(judge)
        else:
            left_out[judge.name] = (
                f"it would extrapolate by {distances[name]:.2g} decades of {name}, and more than "
                f"{farthest:g} are too far"
            )
    if len(near) < 2 or not any(judge.knows_sparsity for judge in near):
        return list(judges), {}
    return near, left_out


def _of_judge(court: Court, i: int) -> Recommendation:
    judge, drawn = court.judges[i], court.drawn[i]
    intervals = {}
    if drawn is not None:
        for name in ("N", "N_active", "S", "D"):
            low, high = percentiles(getattr(drawn.plans, name), LEVEL)
            intervals[name] = float(low), float(high)
    return replace(_row(court, judge.name, court.best[i]), intervals=intervals)


def _row(court: Court, name: str, plan: Plans, spent: float | None = None) -> Recommendation:
    beyond = {judge.name: plan.beyond(judge.fitted_on) for judge in court.judges}
    regrets = court.regrets(plan, spent)
    return Recommendation(
        name,
        plan,
        regrets,
        beyond={judge: distances for judge, distances in beyond.items() if distances},
        at_limits=court.limits.binding(plan),
        worst=max(regrets[i].worst for i in court.counting),
    )


def _affordable(plan: Plans, limits: Constraints) -> Plans:
    """Returns the user's own plan.

    Raises:
        UserError: where it does not keep to the limits.
    """
    cost = float(limits.cost(plan))
    if cost > limits.compute * (1 + 1e-3):
        raise UserError(
            f"--compare: this plan costs {cost:.3g} FLOPs, more than the budget of "
            f"{limits.compute:.3g}; lower its N or D, or raise the budget"
        )
    most = [("{} parameters", plan.N, limit, name) for name, limit in limits.max_parameters.items()]
    most.append(("{} training tokens", plan.D, limits.max_tokens, "the limit of tokens"))
    most.append(("a sparsity of {}", plan.S, limits.max_sparsity, "the ceiling on sparsity"))
    for what, value, limit, name in most:
        if float(value) > limit * (1 + 1e-9):
            # As many digits as tell the two apart.
            apart = (f"{float(value):.{n}g} {limit:.{n}g}".split() for n in range(3, 17))
            own, allowed = next(pair for pair in apart if pair[0] != pair[1])
            raise UserError(
                f"--compare: this plan has {what.format(own)}, and {name} allows {allowed}"
            )
    return plan
