"""The named derivations of a grid: each fills in one setting from others."""

import math

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.grids.hyperparameters import Point, batch_size, learning_rate, needed, settled
from moelaws.grids.model import base_flops, widths_at_ratio
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Derivations, HeadsFromWidth, StepsFromCompute, StepsFromTokens
from moelaws.spec.hyperparameters import Choice
from moelaws.spec.model import Model


def derive_architecture(point: Point, rules: Derivations) -> Point:
    """Returns ``point`` with experts, widths and heads derived unless they are set.

    A rule that lacks a setting, or whose result is not a whole number, raises a UserError.
    """
    point = dict(point)
    _refuse_contradictions(point, rules)
    if rules.n_experts and "n_experts" not in point and point.get("ffn") != "dense":
        point["n_experts"] = experts_from_sparsity(point)
    if rules.widths and "d_model" not in point:
        widths = widths_at_ratio(point, base_flops(point, rules.widths), rules.widths)
        point |= {"d_model": widths.d_model, "d_expert": widths.d_expert}
    if rules.d_expert and "d_expert" not in point and point.get("ffn") != "dense":
        point["d_expert"] = width_from_granularity(point)
    if rules.n_heads and "n_heads" not in point:
        point["n_heads"] = heads_from_width(point, rules.n_heads)
    if "n_heads" in point:
        point.setdefault("n_kv", point["n_heads"])
    return point


def derive_hyperparameters(point: Point, model: Model, rules: Derivations, choice: Choice) -> Point:
    """Returns ``point`` with batch and learning rate derived unless they are set.

    The compute of a point of D tokens, and the tokens of a compute C, follow from the FLOPs of its
    ``model``; ``choice`` settles the rules that are ``chosen``.
    """
    size, steps = count_parameters(model), rules.steps
    point, known = dict(point), {**point, "N": size.total - size.embeddings}
    if isinstance(steps, StepsFromTokens) and (at := steps.laws_at):
        known["D"] = at.D or needed(point, "D", steps.rule)
        known["C"] = train_flops_per_token(model, at.convention) * known["D"]
    elif isinstance(steps, StepsFromCompute) and "C" in point:
        known["D"] = point["C"] / train_flops_per_token(model, steps.convention)
    kinds = model.gates, point.get("optimizer", "adamw"), model.parameterization
    if rules.batch and "batch" not in point:
        point["batch"] = batch_size(known, settled("batch", rules.batch, choice, *kinds))
    if "steps" in point and "batch" in point:
        known.setdefault("D", point["steps"] * point["batch"] * model.context)
    if rules.lr and "lr" not in point:
        point["lr"] = learning_rate(known, settled("lr", rules.lr, choice, *kinds))
    return point


def _refuse_contradictions(point: Point, rules: Derivations) -> None:
    """Refuses a setting that another one overrules: the table would show it, without meaning."""
    if "C" in point and "steps" in point:
        raise UserError("C and steps are both set, but one follows from the other; set one of them")
    if "D" in point and (other := next((n for n in ("C", "steps") if n in point), "")):
        raise UserError(f"D and {other} are both set; one follows from the other")
    if "r" in point and (rules.widths is None or {"d_model", "d_expert"} & point.keys()):
        raise UserError(
            f"r is {point['r']!r}, but the widths do not follow from it; set r or d_model and "
            "d_expert, and for r the rule under derive.widths"
        )
    sparsity = point.get("S")
    if sparsity is None:
        return
    if point.get("ffn") == "dense" and sparsity != 0:
        raise UserError(f"S is {sparsity!r} with ffn: dense, which has no experts to leave out")
    if "n_experts" in point and "top_k" in point:
        given = 1 - point["top_k"] / point["n_experts"]
        if not math.isclose(given, sparsity, abs_tol=1e-9):
            raise UserError(
                f"S is {sparsity!r}, but top_k = {point['top_k']} of n_experts = "
                f"{point['n_experts']} is S = {given:.6g}; set S or n_experts"
            )


def experts_from_sparsity(point: Point) -> int:
    """Returns E = k / (1 - S) (sparsity, Eq 7 solved for E)."""
    k: int = needed(point, "top_k", "sparsity")
    sparsity: float = needed(point, "S", "sparsity")
    experts = k / (1 - sparsity)
    if not math.isclose(experts, round(experts), rel_tol=1e-9):
        raise UserError(
            f"S is {sparsity!r} with top_k = {k}: E = k / (1 - S) = {experts:.4g} is not whole; "
            "choose S = 1 - k / E for a whole E, or set n_experts"
        )
    return round(experts)


def width_from_granularity(point: Point) -> int:
    """Returns d_expert = 2 * d_model / G, rounded down (leverage, Table 9)."""
    width = 2 * needed(point, "d_model", "granularity") / needed(point, "G", "granularity")
    if width < 1:
        raise UserError(f"G is {point['G']!r}, which makes experts of width {width:.3g}; lower G")
    return int(width + 1e-9)


def heads_from_width(point: Point, rule: HeadsFromWidth) -> int:
    """Returns n_heads = d_model / width, at least one."""
    heads = max(1.0, needed(point, "d_model", rule.rule) / rule.width)
    if not heads.is_integer():
        raise UserError(
            f"d_model is {point['d_model']!r}; it must be a multiple of the head width {rule.width}"
        )
    return int(heads)


def planned_steps(point: Point, model: Model, rules: Derivations, batch_from: str) -> int:
    """Returns the optimizer steps: as set, those that spend C by the rule, or those of D tokens.

    Fewer steps than the rule's ``min_steps`` raise a UserError; ``batch_from`` tells it where the
    batch is from.
    """
    rule, batch = rules.steps, f"batch = {point['batch']} ({batch_from})"
    if "steps" in point:
        steps: int = point["steps"]
        if rule and steps < rule.min_steps:
            raise UserError(
                f"steps is {steps} with {batch}; at least min_steps = {rule.min_steps} are needed: "
                "raise steps, or lower min_steps under derive"
            )
        return steps
    price = 1.0  # of a token
    if isinstance(rule, StepsFromTokens):
        name, lower = "D", "a smaller batch or context"
    elif isinstance(rule, StepsFromCompute):
        name, lower = "C", "a smaller batch, or lower context or the model's size"
        price = train_flops_per_token(model, rule.convention)
    else:
        raise UserError("steps is missing; set it under settings or in a sweep, or derive it")
    budget: float = needed(point, name, rule.rule)
    of_step: float = price * point["batch"] * model.context
    if round(budget / of_step) < rule.min_steps:
        cost = f" of {of_step:.3g} FLOPs" if name == "C" else ""
        raise UserError(
            f"{name} is {budget:g} with {batch}; that is enough for {budget / of_step:.3g} steps"
            f"{cost}, and at least min_steps = {rule.min_steps} are needed: raise {name}, or set "
            f"{lower}"
        )
    return round(budget / of_step)
