"""What to train with a budget: what each law recommends, and what each choice may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moelaws.analysis.advice.build import Configuration, built
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.plans import Constraints, Plans, ideal
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
    """

    name: str
    plan: Plans
    regrets: list[Regret]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    beyond: dict[str, dict[str, float]] = field(default_factory=dict)
    at_limits: list[str] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """Returns the largest regret over the judges, nats/token."""
        return max(regret.worst for regret in self.regrets)


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
        set: variable -> what its law sets it to at the configuration.
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
        setters: laws that set one variable; that of ``G`` sets the granularity, that of
            ``r_star`` the active experts where the limits leave them free.
        compare: a plan of the user's own.
        farthest: decades by which a judge may extrapolate to its own best plan; one that would go
            farther takes no part, unless all would.

    Raises:
        UserError: where no plan keeps to the limits, or the user's own costs more than the budget.
    """
    by_variable = {setter.variable: setter for setter in setters}
    near, left_out = _near(judges, limits, farthest)
    court = Court(near, limits)
    recommendations = [_of_judge(court, i) for i in range(len(court.judges))]
    for adviser in advisers:
        try:
            recommendations.append(_row(court, adviser.name, adviser.plan(limits)))
        except UserError as error:
            left_out[adviser.name] = str(error)
    robust = _row(court, ROBUST, court.robust())
    r = by_variable["r_star"].value(robust.plan) if "r_star" in by_variable else USUAL_R
    configuration, plan, not_built = None, None, ""
    try:
        configuration, plan = built(court, robust.plan, shape, r)
    except UserError as error:
        not_built = str(error)
    values = [(name, s.value(plan or robust.plan)) for name, s in by_variable.items()]
    return Advice(
        court,
        recommendations,
        robust,
        configuration,
        None if plan is None else _row(court, CONFIGURATION, plan),
        not_built,
        None if compare is None else _row(court, YOURS, _affordable(compare, limits)),
        {name: x for name, x in values if not np.isnan(x)},
        left_out,
    )


def _near(
    judges: Sequence[Judge], limits: Constraints, farthest: float
) -> tuple[list[Judge], dict[str, str]]:
    """Returns the judges that extrapolate no farther, or all, and why others take no part."""
    near, left_out = [], {}
    for judge in judges:
        distances = judge.beyond(judge.best(limits))
        name = max(distances, key=distances.__getitem__, default="")
        if distances.get(name, 0.0) <= farthest:
            near.append(judge)
        else:
            left_out[judge.name] = (
                f"it would extrapolate by {distances[name]:.2g} decades of {name}, and more than "
                f"{farthest:g} are too far"
            )
    return (near, left_out) if near else (list(judges), {})


def with_granularity(limits: Constraints, setter: Setter) -> Constraints:
    """Returns the limits with the granularity that a law sets, at the budget."""
    plan = ideal(1.0, limits.max_sparsity, limits.compute / 6, limits)
    G = setter.value(plan)
    return limits if np.isnan(G) else replace(limits, G=G)


def _of_judge(court: Court, i: int) -> Recommendation:
    judge, drawn = court.judges[i], court.drawn[i]
    intervals = {}
    if drawn is not None:
        for name in ("N", "N_active", "S", "D"):
            low, high = percentiles(getattr(drawn.plans, name), LEVEL)
            intervals[name] = float(low), float(high)
    return replace(_row(court, judge.name, court.best[i]), intervals=intervals)


def _row(court: Court, name: str, plan: Plans) -> Recommendation:
    beyond = {judge.name: judge.beyond(plan) for judge in court.judges}
    return Recommendation(
        name,
        plan,
        court.regrets(plan),
        beyond={judge: distances for judge, distances in beyond.items() if distances},
        at_limits=court.limits.binding(plan),
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
    most = [("parameters", plan.N, limit, name) for name, limit in limits.max_parameters.items()]
    most.append(("training tokens", plan.D, limits.max_tokens, "the limit of tokens"))
    most.append(("as sparsity", plan.S, limits.max_sparsity, "the ceiling on sparsity"))
    for what, value, limit, name in most:
        if float(value) > limit * (1 + 1e-9):
            raise UserError(
                f"--compare: this plan has {float(value):.3g} {what}, and {name} allows {limit:.3g}"
            )
    return plan
