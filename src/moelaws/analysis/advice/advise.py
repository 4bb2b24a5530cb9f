"""What to train with a budget: what each law recommends, and what each choice may cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moelaws import laws
from moelaws.analysis.advice.build import Configuration, built
from moelaws.analysis.advice.plans import USUAL_G, Constraints, Plans, ideal
from moelaws.analysis.advice.regret import LEVEL, CandidateLaw, Minimax, Regret
from moelaws.fitting.quantiles import percentiles
from moelaws.spec.advice import AdviserEntry, SetterEntry, Shape
from moelaws.spec.errors import UserError

USUAL_R = 1.0  # where no law sets r
ROBUST, CONFIGURATION, YOURS = "robust", "configuration", "your plan"


@dataclass(frozen=True)
class Recommendation:
    """A plan, and what it costs under each candidate law."""

    name: str  # of the law that recommends the plan, or what the plan is
    plan: Plans
    regret: dict[str, Regret]  # candidate law -> regret under it
    worst: float  # regret over the laws that count, nats/token; with draws the interval's upper end
    beyond: dict[str, dict[str, float]]  # candidate law -> column -> decades beyond its runs
    at_limits: list[str]  # constraints that the plan reaches, in words
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # over a fit's draws


@dataclass(frozen=True)
class Advice:
    """The answer: the best plans of the candidate laws, and what follows from them."""

    minimax: Minimax
    recommendations: list[Recommendation]  # of the candidate laws and the advisers, in their order
    robust: Recommendation  # the plan of the least worst-case regret
    configuration: Configuration | None  # the model to build near it; None if there is none
    as_configured: Recommendation | None  # the configuration as a plan
    not_built: str  # why there is no configuration
    compared: Recommendation | None  # the user's own plan
    set: dict[str, float]  # variable -> the value that its law sets at the robust plan
    far: dict[str, dict[str, float]]  # law that is no candidate -> column -> decades beyond it
    left_out: dict[str, str]  # law -> why it takes no part

    @property
    def laws(self) -> tuple[CandidateLaw, ...]:
        return self.minimax.laws

    @property
    def limits(self) -> Constraints:
        return self.minimax.limits

    @property
    def rows(self) -> list[Recommendation]:
        """Returns all plans: those of the laws, robust, the configuration, the user's own."""
        last = (self.robust, self.as_configured, self.compared)
        return [*self.recommendations, *(row for row in last if row)]

    @property
    def all_extrapolate(self) -> bool:
        """Tells whether the robust plan lies beyond the runs of every law."""
        return all(self.robust.beyond.get(law.name) for law in self.laws)


def advise(
    candidates: Sequence[CandidateLaw],
    limits: Constraints,
    shape: Shape,
    *,
    advisers: Sequence[AdviserEntry] = (),
    setters: Sequence[SetterEntry] = (),
    compare: Plans | None = None,
    farthest: float = math.inf,
) -> Advice:
    """Returns the plans that the laws recommend within the limits, and the regret of each.

    Args:
        candidates: laws of the loss, each taken as the truth in turn.
        limits: the budget and the other constraints of a plan.
        shape: what all configurations have in common.
        advisers: laws that say only how many tokens to train.
        setters: laws that set one variable at the robust plan; those of ``G`` and ``r_star`` set
            granularity and active experts of the configuration where the limits leave them free.
        compare: a plan of the user's own, which must keep to the limits.
        farthest: decades by which a candidate may extrapolate to its own best plan. One that would
            go farther takes no part, if two are left and one of them knows of sparsity.
    """
    near, left_out = _near(candidates, limits, farthest)
    minimax = Minimax(near, limits)
    recommendations = [_of_candidate(minimax, i) for i in range(len(near))]
    far = {}
    for adviser in advisers:
        try:
            row = _row(minimax, adviser.law, advised(adviser, limits))
            recommendations.append(row)
            far[adviser.law] = row.plan.beyond(adviser.fitted_on)
        except UserError as error:
            left_out[adviser.law] = str(error)
    robust = _row(minimax, ROBUST, minimax.robust())
    values = {entry.variable: value_set(entry, robust.plan) for entry in setters}
    values = {name: x for name, x in values.items() if not np.isnan(x)}
    G, r = limits.G or values.get("G", USUAL_G), values.get("r_star", USUAL_R)
    configuration, as_configured, not_built = None, None, ""
    try:
        configuration, own = built(minimax, robust.plan, shape, G, r)
        served = 1 + limits.served_tokens / 3 / configuration.tokens
        spent = configuration.flops["all"] * served
        as_configured = _row(minimax, CONFIGURATION, own, spent)
    except UserError as error:
        not_built = str(error)
    if as_configured and as_configured.plan.S == 0:  # a dense model has neither G nor r*
        values = {name: x for name, x in values.items() if name not in ("G", "r_star")}
    far |= {e.law: robust.plan.beyond(e.fitted_on) for e in setters if e.variable in values}
    return Advice(
        minimax,
        recommendations,
        robust,
        configuration,
        as_configured,
        not_built,
        None if compare is None else _row(minimax, YOURS, _affordable(compare, limits)),
        values,
        {name: distances for name, distances in far.items() if distances},
        left_out,
    )


def value_set(entry: SetterEntry, plan: Plans) -> float:
    """Returns the value that a law of one variable sets for one plan; NaN if the plan has none."""
    law = laws.get(entry.law)
    params, columns = law.published or {}, {n: float(x) for n, x in plan.columns().items()}
    if not entry.largest:
        return float(law.evaluate(params, columns)[entry.variable])
    if columns["S"] == 0:
        return math.nan
    values = np.geomspace(entry.low, entry.high, 2001)
    results = law.evaluate(params, columns | {entry.variable: values})[entry.largest]
    return float(values[np.argmax(results)])


def advised(entry: AdviserEntry, limits: Constraints) -> Plans:
    """Returns the plan of a law that says how many tokens to train, if the limits allow it."""
    law, S = laws.get(entry.law), limits.nearest(entry.S)
    if limits.served_tokens:
        raise UserError("it knows no tokens that are served")
    D = float(law.evaluate(law.published or {}, {"C": limits.compute})["D"])
    plan = ideal(limits.compute / (6 * D), S, D, limits)
    if plan.N > limits.largest or D > limits.max_tokens:
        raise UserError(
            f"it wants {float(plan.N):.3g} parameters and {D:.3g} tokens, which the limits do "
            "not allow"
        )
    return plan


def _near(
    candidates: Sequence[CandidateLaw], limits: Constraints, farthest: float
) -> tuple[list[CandidateLaw], dict[str, str]]:
    """Returns the laws that extrapolate no farther, and why the others take no part.

    All take part if fewer than two would be left, or none that knows of sparsity: laws that say
    nothing of it must not decide on it alone.
    """
    near, left_out = [], {}
    for law in candidates:
        distances = law.best(limits).beyond(law.fitted_on)
        name = max(distances, key=distances.__getitem__, default="")
        if distances.get(name, 0.0) <= farthest:
            near.append(law)
        else:
            left_out[law.name] = (
                f"it would extrapolate by {distances[name]:.2g} decades of {name}, and more than "
                f"{farthest:g} are too far"
            )
    if len(near) < 2 or not any(law.knows_sparsity for law in near):
        return list(candidates), {}
    return near, left_out


def _of_candidate(minimax: Minimax, i: int) -> Recommendation:
    truth, intervals = minimax.truths[i], {}
    if truth.drawn is not None:
        for name in ("N", "N_active", "S", "D"):
            low, high = percentiles(getattr(truth.drawn[0], name), LEVEL)
            intervals[name] = float(low), float(high)
    return replace(_row(minimax, truth.law.name, truth.best), intervals=intervals)


def _row(minimax: Minimax, name: str, plan: Plans, spent: float | None = None) -> Recommendation:
    regret = minimax.regrets(plan, spent)
    beyond = {law.name: plan.beyond(law.fitted_on) for law in minimax.laws}
    return Recommendation(
        name,
        plan,
        regret,
        max(regret[law].worst for law in minimax.counting),
        {law: distances for law, distances in beyond.items() if distances},
        minimax.limits.binding(plan),
    )


def _affordable(plan: Plans, limits: Constraints) -> Plans:
    """Returns the user's own plan, which must keep to the limits."""
    cost = float(limits.cost(plan))
    if cost > limits.compute * (1 + 1e-3):
        raise UserError(
            f"--compare: this plan costs {cost:.3g} FLOPs, more than the budget of "
            f"{limits.compute:.3g}; lower its N or D, or raise the budget"
        )
    held = [("{} parameters", plan.N, limit, name) for name, limit in limits.max_parameters.items()]
    held.append(("{} training tokens", plan.D, limits.max_tokens, "the limit of tokens"))
    held.append(("a sparsity of {}", plan.S, limits.max_sparsity, "the ceiling on sparsity"))
    for what, value, limit, name in held:
        if float(value) > limit * (1 + 1e-9):
            own = what.format(f"{float(value):.10g}")
            raise UserError(f"--compare: this plan has {own}, and {name} allows {limit:.10g}")
    return plan
