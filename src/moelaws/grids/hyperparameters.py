"""Learning rate and batch of a point, by a pinned or published law, a power law, or a table."""

import math
from typing import Any, Literal

from moelaws.laws import step_law
from moelaws.laws.leverage import hyperparameters as leverage
from moelaws.spec.errors import UserError
from moelaws.spec.experts import Gates
from moelaws.spec.grid import Chosen, Derivations, Hyperparameter, PowerOf, PublishedLaw, TableOf
from moelaws.spec.hyperparameters import Choice

Point = dict[str, Any]
Settled = PowerOf | PublishedLaw | TableOf  # a rule that leaves no choice to the project


def _power(coefficient: float, **exponent: float) -> PowerOf:
    at = dict.fromkeys(exponent, 1.0)
    return PowerOf(rule="power", value=coefficient, at=at, exponent=exponent)


_EQ_5, _STEP = leverage.LAW.constants, step_law.LAW.constants
# Rule -> its laws, of a batch in tokens
PUBLISHED = {
    "leverage": {
        "lr": _power(_EQ_5["lr_coefficient"], C=_EQ_5["lr_exponent"]),
        "batch": _power(_EQ_5["B_coefficient"], C=_EQ_5["B_exponent"]),
    },
    "step_law": {
        "lr": _power(_STEP["lr_coefficient"], N=_STEP["lr_N"], D=_STEP["lr_D"]),
        "batch": _power(_STEP["B_coefficient"], D=_STEP["B_D"]),
    },
}


def settled(
    name: Literal["lr", "batch"],
    rule: Hyperparameter,
    choice: Choice,
    gates: Gates,
    optimizer: str,
    parameterization: str = "standard",
) -> Settled:
    """Returns ``rule``, or what the project chooses for it; refuses rates of other trainings."""
    if not isinstance(rule, Chosen):
        return rule
    if name == "lr" and parameterization != "standard":
        raise UserError(
            f"lr: {{rule: chosen}} with parameterization: {parameterization}; its laws are of "
            "standard models: set lr to the best rate at the base shape"
        )
    source, pinned = choice.source, choice.of(gates)
    searched = source in ("auto", "pinned", "transfer")
    rates = choice.rates.get(rule.search) if searched else None
    if name == "lr" and optimizer != (of := rates.optimizer if rates else "adamw"):
        raise UserError(
            f"lr: {{rule: chosen}} follows rates for {of} here; set lr, or pin a search of "
            f"{optimizer} alone and name it as `search` (docs/hyperparameters.md)"
        )
    if name == "lr" and rates:
        return rates.lr
    if source == "transfer":
        raise UserError(
            f"{name}: {{rule: chosen}} is that of a base under hyperparameters: transfer, and this "
            "point takes no rate from one; set both, or neither"
        )
    if source == "auto":
        source = "pinned" if pinned else "tables" if rule.rows else "published"
    if source == "published" or source == "step_law":
        return PublishedLaw(rule="leverage" if source == "published" else source)
    if source == "tables":
        if not rule.rows:
            raise UserError(
                f"config.yaml says hyperparameters: tables, but derive.{name} has none; add by and "
                "rows there, or choose auto, pinned, published or step_law"
            )
        return rule
    if pinned is None:
        raise UserError(
            f"config.yaml says hyperparameters: pinned, but there is no {choice.file}; search and "
            "pin a law (docs/hyperparameters.md), or choose auto, published, step_law or tables"
        )
    law, others = pinned.lr, dict[str, float]()
    if name == "batch":
        law, others = pinned.batch_tokens, {"context": -1.0}  # sequences: tokens / context
    return _power(law.coefficient, C=law.exponent, **others)


def transferred(point: Point, rules: Derivations, choice: Choice) -> tuple[Point, Derivations]:
    """Returns ``point`` with the base that it takes its rate from, and rules with that rate's law.

    Both stay as they are unless the project chose ``transfer``, and where the rate is set or has a
    search of its own. A UserError refuses a point for which no base is pinned, or by another recipe
    than the base's.
    """
    rule, bases = rules.lr, choice.transferred
    if choice.source != "transfer" or "lr" in point or not isinstance(rule, Chosen):
        return point, rules
    if rule.search in choice.rates:
        return point, rules
    where = f"config/hyperparameters/transfer/{choice.file.name}"
    if bases is None:
        raise UserError(
            f"config.yaml says hyperparameters: transfer, but there is no {where}; search and pin "
            "it (docs/transfer.md), or choose auto, pinned, published, step_law or tables"
        )
    is_dense, optimizer = point.get("ffn") == "dense", point.get("optimizer", "adamw")
    k, E = (None if is_dense else point.get(name) for name in ("top_k", "n_experts"))
    pin = bases.of(k, E, optimizer)
    if pin is None:
        of = f"{k} of {E} experts active" if E else "dense layers"
        raise UserError(
            f"{where} has no base by {optimizer} with {of}; search and pin one, or give such "
            "models a search of their own (docs/transfer.md)"
        )
    recipe = ("parameterization", "init_std", "batch", "context", "vocab_size")
    own = {name: getattr(pin, name) for name in recipe}
    own |= {f"base_{name}": x for name, x in pin.base.model_dump(exclude_none=True).items()}
    stated = dict(point)
    if rules.batch and not isinstance(rules.batch, Chosen):
        stated.setdefault("batch", f"by the rule {rules.batch.rule}")
    for name, value in own.items():
        if stated.get(name, value) != value:
            raise UserError(
                f"{name} is {stated[name]}, and {value} for the base in {where}, whose rate serves "
                "its own recipe alone"
            )
    law = PowerOf(rule="power", value=pin.lr, at={"D": pin.D}, exponent={"D": bases.exponent})
    return point | own, rules.model_copy(update={"lr": law})


def learning_rate(point: Point, rule: Settled) -> float:
    return _value(point, rule, "lr")


def batch_size(point: Point, rule: Settled) -> int:
    """Returns sequences a step, to the nearest positive multiple of ``balance_group``, if any."""
    sequences = _value(point, rule, "batch")
    if isinstance(rule, PublishedLaw):
        sequences /= needed(point, "context", f"{rule.rule} (batch)")
    group = point.get("balance_group", 1)
    return int(max(1, math.floor(sequences / group + 0.5)) * group)


def _value(point: Point, rule: Settled, name: str) -> float:
    if isinstance(rule, PublishedLaw):
        return power_of(point, PUBLISHED[rule.rule][name], f"{rule.rule} ({name})")
    if isinstance(rule, PowerOf):
        return power_of(point, rule, f"power ({name})")
    return from_table(point, rule, name)


def power_of(point: Point, rule: PowerOf, rule_name: str) -> float:
    """Returns a power law of other settings, rounded to 6 digits so that identities are stable."""
    value = rule.value
    for setting, exponent in rule.exponent.items():
        base = needed(point, setting, rule_name) / rule.at[setting]
        value *= math.exp(max(-700.0, min(700.0, exponent * math.log(base))))
    return float(f"{value:.6g}")


def from_table(point: Point, rule: TableOf, name: str) -> float:
    """Returns the value of the row for the point's settings, which the table must have."""
    key = tuple(needed(point, setting, f"table ({name})") for setting in rule.by)
    for row in rule.rows:
        if row[:-1] == key:
            return row[-1]
    rows = ", ".join(_named(rule.by, row) for row in rule.rows)
    raise UserError(
        f"the table of {name} has no row for {_named(rule.by, key)}; it has {rows}; "
        f"add a row under derive.{name}, or set {name}"
    )


def _named(names: tuple[str, ...], values: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{n} {v:.10g}" for n, v in zip(names, values, strict=False)) + ")"


def needed(point: Point, setting: str, rule: str) -> Any:
    """Returns the point's ``setting``; the error where it is missing names the ``rule``."""
    if point.get(setting) is None:
        raise UserError(f"{setting} is missing; the derivation {rule!r} needs it")
    return point[setting]
