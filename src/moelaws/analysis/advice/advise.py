"""What to train with a budget: the model to build, what laws recommend, and what that costs."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from moelaws import laws
from moelaws.accounting.flops import CONVENTIONS, TRAINING, forward_terms, train_flops_per_token
from moelaws.accounting.parameters import Parameters, count_parameters
from moelaws.analysis.advice.plans import USUAL_G, Constraints, Plans, ideal
from moelaws.analysis.advice.regret import FARTHEST, LEVEL, ROUNDED, CandidateLaw, Minimax, Regret
from moelaws.analysis.advice.shapes import Space
from moelaws.fitting.quantiles import percentiles
from moelaws.spec.advice import AdviserEntry, SetterEntry, Shape
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model

USUAL_R = 1.0  # where no law sets r
ROBUST, YOURS = "robust", "your plan"
TRAINED, SERVED = "training only", "served"
# Laws of G and r need a plan before one is found: its sparsity, and tokens for each active
# parameter.
_USUAL_S, _USUAL_RATIO = 0.95, 20.0
# An adviser that is farther than this, in ln, from all models in size and sparsity is passed over.
_TOO_FAR = 0.5


@dataclass(frozen=True)
class Recommendation:
    """A plan, and what it costs under each candidate law."""

    name: str  # of the law that recommends the plan, or what the plan is
    plan: Plans
    spent: float  # FLOPs in GPU time; more than the budget only for a plan of the user's own
    regret: dict[str, Regret]  # candidate law -> regret under it
    # Regret over the laws that count, nats/token, with draws the upper end of its interval
    worst: float  # NaN where one of them judges nothing
    beyond: dict[str, dict[str, float]]  # candidate law -> column -> decades beyond its runs
    at_limits: list[str]  # constraints that the plan nearly reaches, in words
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)  # over a fit's draws


@dataclass(frozen=True)
class Configuration:
    """A model that can be built, with what it costs."""

    model: Model
    parameters: Parameters
    tokens: float  # that the budget trains
    ratio: float  # FLOPs of feed-forward layers over attention's (allocation, App C corrected)
    waiting: float  # fraction of the time in which GPUs move data and compute nothing
    gpu_bytes: float  # of each GPU: its part of the optimizer states, and of a sequence
    cache_bytes: float  # of keys and values of the sequences that are served at once
    served_bytes: float  # to serve from: these and the weights

    @property
    def flops(self) -> dict[str, float]:
        """Returns convention -> training FLOPs; ``all`` counts every matrix product."""
        return {
            "all": TRAINING * sum(forward_terms(self.model).values()) * self.tokens,
            **{name: train_flops_per_token(self.model, name) * self.tokens for name in CONVENTIONS},
        }


@dataclass(frozen=True)
class Advice:
    """The answer: the model to build, the best ones by each law, and what follows from them."""

    minimax: Minimax
    recommendations: list[Recommendation]  # of the candidate laws and the advisers, in their order
    robust: Recommendation  # the model of the least worst-case regret
    configuration: Configuration  # the same in whole layers and experts
    dense: dict[str, Regret]  # candidate law -> regret of its best dense model; {} if it is all
    compared: Recommendation | None  # the user's own plan
    set: dict[str, float]  # variable -> the value that its law sets at the robust plan
    far: dict[str, dict[str, float]]  # law that is no candidate -> column -> decades beyond it
    left_out: dict[str, str]  # law -> why it takes no part
    held: float | None = None  # budget whose sparsity is taken, where no law judges this one's

    @property
    def laws(self) -> tuple[CandidateLaw, ...]:
        return self.minimax.laws

    @property
    def limits(self) -> Constraints:
        return self.minimax.space.limits

    @property
    def rows(self) -> list[Recommendation]:
        """Returns all plans: those of the laws, robust, the user's own."""
        return [*self.recommendations, self.robust, *([self.compared] if self.compared else [])]

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
) -> Advice:
    """Returns the models that the laws recommend within the limits, and the regret of each.

    A law judges no budget more than two decades beyond those of its runs. Where no law that knows
    of sparsity judges a budget, the sparsity is that of the nearest one which such a law judges.

    Args:
        candidates: laws of the loss, each taken as the truth in turn.
        limits: the budget and the other constraints of a plan.
        shape: what all models that can be built have in common.
        advisers: laws that say only how many tokens to train.
        setters: laws that set one variable; those of ``G`` and ``r_star`` set granularity and
            active experts of all models where the limits leave them free.
        compare: a plan of the user's own, which must keep to the limits; its ``D`` may be NaN.
    """
    size = math.sqrt(limits.compute / 6 / _USUAL_RATIO)
    usual = ideal(size, min(_USUAL_S, limits.max_sparsity), _USUAL_RATIO * size, limits)
    values = _set(setters, usual)
    space = Space(limits, shape, values.get("G", USUAL_G), values.get("r_star", USUAL_R))
    near, left_out = _judging(candidates, space)
    held = None
    if limits.max_sparsity and not any(law.knows_sparsity for law in near):
        held = _nearest_judged(candidates, limits.compute)
    if held:
        at_held = advise(candidates, replace(limits, compute=held), shape, setters=setters)
        space = space.held_to(float(at_held.robust.plan.S))
        near, left_out = _judging([replace(law, S=None) for law in candidates], space)
    minimax = Minimax(near, space)
    recommendations = [_of_candidate(minimax, i) for i in range(len(minimax.truths))]
    far = {}
    for adviser in advisers:
        try:
            row = _row(minimax, adviser.law, advised(adviser, space))
            recommendations.append(row)
            far[adviser.law] = row.plan.beyond(adviser.fitted_on)
        except UserError as error:
            left_out[adviser.law] = str(error)
    at = minimax.robust()
    robust = _row(minimax, ROBUST, at)
    values = _set(setters, robust.plan)
    far |= {e.law: robust.plan.beyond(e.fitted_on) for e in setters if e.variable in values}
    return Advice(
        minimax,
        recommendations,
        robust,
        configured(space, at),
        _dense(minimax),
        None if compare is None else _compared(minimax, compare),
        values,
        {name: distances for name, distances in far.items() if distances},
        left_out,
        held,
    )


def configured(space: Space, at: int) -> Configuration:
    """Returns a model of the space with its costs."""
    model, own = space.shapes.model(at), space.shapes.at(slice(at, at + 1))
    activations = own.activation_bytes * model.context
    return Configuration(
        model,
        count_parameters(model),
        float(space.plans.D[at]),
        float(own.ratio[0]),
        1 - float(own.flops[0] / space.cost[at]),
        float(space.limits.gpu_bytes(own.total, activations)[0]),
        *(float(space.limits.served_bytes(N, own.cache_bytes)[0]) for N in (0.0, own.total)),
    )


def _set(setters: Sequence[SetterEntry], plan: Plans) -> dict[str, float]:
    """Returns variable -> the value that its law sets; a dense model has neither G nor r*."""
    values = {entry.variable: value_set(entry, plan) for entry in setters}
    of_mixtures = ("G", "r_star") if plan.S == 0 else ()
    return {n: x for n, x in values.items() if not np.isnan(x) and n not in of_mixtures}


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


def advised(entry: AdviserEntry, space: Space) -> int:
    """Returns the index of the model nearest to what a law of tokens wants, if there is one."""
    law, limits = laws.get(entry.law), space.limits
    if limits.served_tokens:
        raise UserError("it knows no tokens that are served")
    S = min(entry.S, limits.max_sparsity)
    D = float(law.evaluate(law.published or {}, {"C": limits.compute})["D"])
    plan = ideal(limits.compute / (6 * D), S, D, limits)
    at = space.nearest(plan)
    found = space.plans.at(at)
    distances = np.log(found.N_active / plan.N_active), np.log((1 - found.S) / (1 - S))
    if D > limits.max_tokens or np.hypot(*distances) > _TOO_FAR:
        raise UserError(
            f"it wants {float(plan.N):.3g} parameters and {D:.3g} tokens, which the limits do "
            "not allow"
        )
    return at


def _judging(
    candidates: Sequence[CandidateLaw], space: Space
) -> tuple[list[CandidateLaw], dict[str, str]]:
    """Returns the laws that judge the budget and each other's best models, and why others do not.

    Fits of the user's own are asked first, and then those with runs nearer to the budget. A
    UserError says that none is left.
    """
    compute, left_out = space.limits.compute, {}
    best: dict[str, Plans] = {}  # of the laws that take part
    for law in sorted(
        candidates, key=lambda x: (x.coefficients == "published", _decades(x, compute))
    ):
        distance = _decades(law, compute)
        near = [other for other in candidates if other.name in best and other.determined]
        if distance >= FARTHEST + ROUNDED:
            left_out[law.name] = (
                f"the budget is {distance:.2g} decades from those of its runs, and beyond "
                f"{FARTHEST:g} a law judges nothing"
            )
        elif not law.judges(space.plans).any():
            left_out[law.name] = (
                f"no model of the shape is within {FARTHEST:g} decades of its runs; --shape has "
                "those of smaller models"
            )
        else:
            own = space.plans.at(law.best(space))
            apart = [o for o in near if not (o.judges(own) and law.judges(best[o.name]))]
            if apart and law.determined:
                left_out[law.name] = (
                    f"its runs and those of {apart[0].name} are too far apart to judge one model"
                )
            else:
                best[law.name] = own
    if candidates and not best:
        name, reason = next(iter(left_out.items()))
        raise UserError(
            f"no law judges a budget of {compute:.3g} FLOPs; of {name} {reason}. --fits takes fits "
            "to runs of your own"
        )
    return [law for law in candidates if law.name in best], left_out


def _decades(law: CandidateLaw, compute: float) -> float:
    """Returns how far a budget lies beyond those of a law's runs; 0 within or where unknown."""
    low, high = law.fitted_on.get("C", (compute, compute))
    below = math.log10(low / compute) if low else -math.inf
    return max(math.log10(compute / high), below, 0.0)


def _nearest_judged(candidates: Sequence[CandidateLaw], compute: float) -> float | None:
    """Returns the budget nearest to ``compute`` that a law which knows of sparsity judges.

    It is None if this is ``compute`` itself: other limits are why no such law judges then.
    """
    reach = 10**FARTHEST * (1 - 1e-9)
    known = [law.fitted_on["C"] for law in candidates if law.knows_sparsity and law.determined]
    ends = [high * reach if compute > high else low / reach for low, high in known]
    nearest = min(ends, key=lambda end: abs(math.log(end / compute)), default=compute)
    return None if math.isclose(nearest, compute) else nearest


def _of_candidate(minimax: Minimax, i: int) -> Recommendation:
    truth, intervals = minimax.truths[i], {}
    if truth.drawn is not None:
        for name in ("N", "N_active", "S", "D"):
            low, high = percentiles(getattr(truth.drawn[0], name), LEVEL)
            intervals[name] = float(low), float(high)
    return replace(_row(minimax, truth.law.name, truth.at), intervals=intervals)


def _row(minimax: Minimax, name: str, at: int) -> Recommendation:
    space = minimax.space
    plan = space.plans.at(at)
    served = 2 * plan.N_active * space.limits.served_tokens
    return _judged(minimax, name, plan, float(space.cost[at] * plan.D + served))


def _judged(minimax: Minimax, name: str, plan: Plans, spent: float) -> Recommendation:
    regret = minimax.regrets(plan, spent)
    beyond = {law.name: plan.beyond(law.fitted_on) for law in minimax.laws}
    return Recommendation(
        name,
        plan,
        spent,
        regret,
        float(np.max([regret[law].worst for law in minimax.counting])),
        {law: distances for law, distances in beyond.items() if distances},
        minimax.space.limits.binding(plan),
    )


def _dense(minimax: Minimax) -> dict[str, Regret]:
    """Returns the regret of each law's best dense model, of laws that know of sparsity."""
    space, regrets = minimax.space, {}
    for truth in minimax.truths:
        losses = np.where(space.shapes.E == 0, truth.law.loss(space.plans), np.nan)
        if truth.law.knows_sparsity and not np.isnan(losses).all():
            at = int(np.nanargmin(losses))
            regrets[truth.law.name] = _row(minimax, "dense", at).regret[truth.law.name]
    return regrets


def _compared(minimax: Minimax, plan: Plans) -> Recommendation:
    """Returns the user's own plan, which must keep to the limits.

    A token of it costs as many FLOPs for each active parameter as of the model nearest to it.
    """
    space, limits = minimax.space, minimax.space.limits
    like = space.nearest(plan)
    cost = float(plan.N_active) * float(space.cost[like] / space.shapes.active[like])
    if np.isnan(plan.D):
        plan = replace(plan, D=limits.tokens(plan.N_active, cost))
    if plan.D <= 0:
        raise UserError("--compare: serving it takes the whole budget, so it trains no token")
    spent = cost * float(plan.D) + 2 * float(plan.N_active) * limits.served_tokens
    if min(spent, C := plan.values()["C"]) > limits.compute * (1 + 1e-3):
        raise UserError(
            f"--compare: this plan costs {spent:.3g} FLOPs, or {C:.3g} by 6 N_active D, more than "
            f"the budget of {limits.compute:.3g}; lower its N or D, or raise the budget"
        )
    held = {name: (plan.N, most) for name, most in limits.max_parameters.items()}
    held["the limit of tokens"] = plan.D, limits.max_tokens
    held["the ceiling on sparsity"] = plan.S, limits.max_sparsity
    for name, (own, most) in held.items():
        if own > most * (1 + 1e-9):
            raise UserError(f"--compare: {name} allows {most:.10g}, and this plan has {own:.10g}")
    return _judged(minimax, YOURS, plan, spent)


def side_by_side(ask: Callable[[Constraints], Advice], answer: Advice) -> dict[str, Advice]:
    """Returns the answers for a model that is trained only, and for one that is served, too.

    Where the limits of ``answer`` name no number of served tokens, as many are served as trained.
    The other answer is left out if no law judges it.
    """
    limits, own = answer.limits, {SERVED if answer.limits.served_tokens else TRAINED: answer}
    with suppress(UserError):
        if limits.served_tokens:
            return {TRAINED: ask(replace(limits, served_tokens=0.0)), **own}
        served = answer
        for _ in range(4):  # the number of tokens changes with the model that they ask for
            c = served.configuration
            each = c.flops["all"] / (1 - c.waiting) / c.tokens + 2 * c.parameters.active
            T = min(limits.compute / each, limits.max_tokens)
            if math.isclose(T, served.limits.served_tokens, rel_tol=0.03):
                break
            served = ask(replace(limits, served_tokens=T))
        return {**own, SERVED: served}
    return own


def served_for(ask: Callable[[Constraints], Advice], answer: Advice) -> float | None:
    """Returns how many tokens served beside its training make the user's own size the best one.

    It is the least power of the root of ten at which the robust model, of the plan's compute and
    that of serving, has no more active parameters: the more is served, the fewer it has. None if it
    is not smaller without any, or if no number up to 1e18 that the laws judge brings that about.
    """
    plan = answer.compared.plan if answer.compared else None
    if plan is None or answer.robust.plan.N_active <= plan.N_active:
        return None
    own, spent = float(plan.N_active), plan.values()["C"]

    @cache
    def active(T: float) -> float:
        """Returns the active parameters of the model that also serves T tokens; 0 if none."""
        with suppress(UserError):  # beyond the reach of all laws
            limits = replace(answer.limits, compute=spent + 2 * own * T, served_tokens=T)
            return float(ask(limits).robust.plan.N_active)
        return 0.0

    powers = [float(T) for T in 10 ** np.arange(9, 18.1, 0.5)]
    at = bisect_left(powers, True, key=lambda T: active(T) <= own)
    return powers[at] if at < len(powers) and active(powers[at]) else None
