"""General rules of claims: what ``measure`` of a claim says, measured on the study's files.

A rule gives effects, of which one stands for the claim and some or all decide. Where it finds
nothing to measure, the evidence has no number and says why.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import row_mask
from moelaws.analysis.predictions import excess, excess_by_blocks, predicted, rmse
from moelaws.claims.base import Evidence
from moelaws.spec.errors import UserError
from moelaws.spec.measure import BRACES, Bound, Excess, Measure, Parameter, Rows, refuse_lack
from moelaws.spec.rows import select

# Which of the numbers in rows stands for a claim; a missing one is the farthest from 0
PLACES: Mapping[str, Callable[[Any], Any]] = {
    "first": lambda x: 0,
    "middle": lambda x: len(x) // 2,
    "least": np.argmin,
    "farthest": lambda x: np.argmax(np.abs(x)),
}


def measured(inputs: FittedInputs, rule: Measure) -> Evidence:
    """Returns what a general rule measures; a UserError refuses a column that its table lacks."""
    frame = None
    if rule.columns:
        frame = inputs.derived(rule.source) if rule.source else inputs.completed
        rule.refuse_unknown(frame.columns)
    return RULES[rule.rule](rule, inputs, frame)


def rows(rule: Rows, inputs: FittedInputs, frame: pd.DataFrame) -> Evidence:
    """Returns the numbers in rows of a derived table."""
    # A column without cells has neither words nor numbers.
    chosen = [row for _, row in frame[row_mask(frame, rule.where)].iterrows()] if len(frame) else []
    if not chosen:
        none = f"the table {rule.table} has no row{' with ' if rule.where else ''}{rule.where}"
        return Evidence(none, needed=rule.missing)
    effects, decide, texts = [], [], []
    for row in chosen:
        numbers = {name: Effect.of_row(row, name, str(row[rule.of])) for name in rule.numbers}
        effects.append(effect := numbers[rule.effect])
        decide.append(_joined([*(numbers[name] for name in rule.joined), effect]))
        listed = ", ".join(f"{name} {one}" for name, one in numbers.items())
        texts.append(f"{effect.of}: {effect if effect.note or len(numbers) == 1 else listed}")
    if rule.show == "mean":
        if "mean" not in (names := [effect.of for effect in effects]):
            raise UserError(f"measure: no row of the table {rule.table} has {rule.of} == mean")
        place = names.index("mean")
    else:
        place = int(PLACES[rule.show]([effect.value for effect in effects]))
    shown, row = effects[place], chosen[place]
    if math.isnan(shown.value):
        return Evidence("; ".join(texts))
    text = _said(rule.says, {**row, "effect": shown, "each": "; ".join(texts)})
    each = [one for one in decide if rule.show != "mean" or one.of != "mean"]
    decides = each if rule.decide == "each" else [decide[place]]
    return Evidence(text, shown, rule.unit or str(row.get("unit", "")), decides)


def _joined(effects: list[Effect]) -> Effect:
    """Returns the last of ``effects`` with an interval that holds those of all."""
    low, high = min(one.low for one in effects), max(one.high for one in effects)
    return replace(effects[-1], low=low, high=high)


def bound(rule: Bound, inputs: FittedInputs, frame: pd.DataFrame) -> Evidence:
    """Returns the values of a column, all of which decide."""
    values = frame[rule.column] / (frame[rule.over] if rule.over else 1)
    least, largest = float(values.min()), float(values.max())
    farthest = max(least, largest, key=lambda end: abs(end - rule.centre))
    facts = {"column": rule.column, "least": least, "largest": largest, "n": len(values)}
    decides = [Effect(value, value, value) for value in values]
    return Evidence(_said(rule.says, facts), Effect(farthest, least, largest), rule.unit, decides)


def parameter(rule: Parameter, inputs: FittedInputs, frame: None = None) -> Evidence:
    """Returns a parameter of fits, or of groups of a fit, with its interval."""
    every, decides = [], []
    for fit in rule.fits:
        if few := _few(rule, inputs, fit):
            return few
        for part in inputs.fit(fit).parts:
            of = " ".join(map(str, part.where.values())) or fit
            known: Mapping[str, Any] = part.profile if rule.ends == "profile" else part.params
            refuse_lack(rule.parameter, known, f"the {rule.ends} of {fit} has no")
            own = known[rule.parameter]
            low, high = np.array([own.low, own.high], float).tolist()  # None is NaN
            if rule.ends == "profile":
                low, high = own.low or 0.0, math.inf if own.high is None else own.high
            low, high = low - rule.margin, high + rule.margin
            every.append(effect := Effect(own.estimate, low, high, part.n, of))
            if rule.ends == "report" and rule.parameter in part.diagnostics.unidentified:
                # Draws that find no bound say where they stopped, not where the parameter may lie.
                effect = replace(effect, low=-math.inf, high=math.inf)
            if select(part.where, rule.where):
                decides.append(effect)
    text = _said(rule.says, {"each": _listed(every), "n": sum(one.n for one in every)})
    if not decides:
        return Evidence(f"no fit has {rule.where}", needed=rule.missing)
    return Evidence(text, decides[0], rule.unit, decides)


def _few(rule: Parameter | Excess, inputs: FittedInputs, fit: str) -> Evidence | None:
    """Returns that a fit has fewer runs than the rule asks for, if it has."""
    if not rule.fewest:
        return None
    fitted, free = inputs.fit(fit).parts[0].n, inputs.law(fit).n_free
    few = f"{fitted} runs were fitted, fewer than {rule.fewest} for each of {free} coefficients"
    return Evidence(few, needed=rule.missing) if fitted < rule.fewest * free else None


def errors(rule: Excess, inputs: FittedInputs, frame: pd.DataFrame | None) -> Evidence:
    """Returns how much larger the errors of other fits are than those of one."""
    runs = inputs.derived(rule.table) if rule.table else inputs.table
    own, *others = (predicted(inputs, fit, runs) for fit in rule.read_fits)
    if few := _few(rule, inputs, rule.fit):
        return few
    if rule.blocks:
        level = inputs.fit(rule.fit).level
        effects = [excess_by_blocks(one, own, rule.blocks, level) for one in others]
    else:
        effects = [excess(one, own) for one in others]
    effects = [replace(one, of=fit) for one, fit in zip(effects, rule.over, strict=True)]
    error, n = rmse(own, own.held), int(own.held.sum())
    if error > own.rows["L"][own.held].std(ddof=0):
        # The runs fitted do not determine the law there, and some such fits miss by millions.
        text = f"RMSE on {n} held-out runs is {error:.3g} by {rule.fit}"
        return Evidence(f"{text}, more than they differ from their mean", needed=rule.missing)
    least = min(effects, key=lambda effect: effect.value)
    if math.isnan(least.value):
        return Evidence(f"{n} runs are held out", needed=rule.missing)
    facts = {"fit": rule.fit, "own": error, "n": n, "each": _listed(effects)}
    text = _said(rule.says, facts)
    return Evidence(text, least, rule.unit, effects)


RULES: Mapping[str, Callable[..., Evidence]] = {
    "rows": rows,
    "bound": bound,
    "parameter": parameter,
    "excess": errors,
}


def _listed(effects: Iterable[Effect]) -> str:
    return "; ".join(f"{effect.of} {effect}" for effect in effects)


def _said(sentence: str, facts: Mapping[str, Any]) -> str:
    """Returns a sentence in which ``facts`` stand for their names in braces."""

    def fact(match: re.Match[str]) -> str:
        refuse_lack(match[1], facts, "says: there is no")
        value = facts[match[1]]
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    return re.sub(BRACES, fact, sentence)
