"""The variables of the field's tables, their units, and how they follow from one another.

A table rarely holds every variable of a law, but often those that determine it: tokens follow from
compute and parameters, sparsity from the counts of experts. Such a derivation is used only where
the variable itself is not given, and reports name it.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from moelaws.laws import base
from moelaws.laws.base import POSITIVE, Array, Derivation, Variable
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.numbers import number

_TABLE = table_beside(__file__)
VOCABULARY: Mapping[str, Variable] = {
    name: Variable(name, unit, text, getattr(base, domain))
    for name, (unit, text, domain) in _TABLE["variables"].items()
}
SOME_ROW_ABOVE: Mapping[str, float] = _TABLE["some_row_above"]
USUAL_UNITS: Mapping[str, str] = _TABLE["usual"]
MAX_LOSS = 15.0  # nats a token: ln of a vocabulary is below it, a perplexity rarely is
BITS_A_BYTE = "bits/byte"  # of a loss that is comparable across tokenizers

LOSS = Variable("L", "nats/token", "held-out loss")


def variable(name: str, description: str = "") -> Variable:
    """Returns the variable of that name; with ``description``, in a law's own wording."""
    shared = VOCABULARY[name]
    return replace(shared, description=description) if description else shared


# If several derivations of a variable are possible, the first is used.
DERIVATIONS = (
    Derivation("S", ("E", "k"), "S = (E - k) / E", lambda E, k: (E - k) / E),
    Derivation("N_active", ("N", "S"), "N_active = (1 - S) N", lambda N, S: (1 - S) * N),
    Derivation("N_active", ("N",), "N_active = N (dense: no S, nor E and k)", lambda N: N),
    Derivation("D", ("C", "N_active"), "D = C / (6 N_active)", lambda C, N_a: C / (6 * N_a)),
    Derivation("C", ("N_active", "D"), "C = 6 N_active D", lambda N_a, D: 6 * N_a * D),
    Derivation(
        "A", ("k", "E_s", "E"), "A = (k + E_s) / (E + E_s)", lambda k, E_s, E: (k + E_s) / (E + E_s)
    ),
    Derivation("G", ("d_model", "d_expert"), "G = 2 d_model / d_expert", lambda d, w: 2 * d / w),
)


def plan(
    available: Collection[str], targets: Iterable[str], own: Sequence[Derivation] = ()
) -> tuple[Derivation, ...]:
    """Returns the derivations, in their order, that give ``targets`` from ``available``.

    A law's ``own`` derivations count too. Variables that are available are never derived, and those
    that cannot be derived are left out. No chain of derivations needs its own result.
    """
    steps = []
    known = set(available)

    def reach(name: str, above: frozenset[str]) -> list[Derivation] | None:
        """Returns the further steps that derive ``name``; None if it cannot be derived."""
        if name in known:
            return []
        for derivation in (*DERIVATIONS, *own):
            if derivation.result != name or above & set(derivation.needs):
                continue
            ways = [reach(need, above | {name}) for need in derivation.needs]
            if all(way is not None for way in ways):
                return [step for way in ways for step in way or []] + [derivation]
        return None

    for name in targets:
        for step in reach(name, frozenset({name})) or []:
            if step.result not in known:
                steps.append(step)
                known.add(step.result)
    return tuple(steps)


def derive(
    given: Mapping[str, Array], targets: Iterable[str], own: Sequence[Derivation] = ()
) -> tuple[dict[str, Array], dict[str, str]]:
    """Returns the columns ``targets`` with all that lead to them, derived, and their texts.

    ``given`` has values of one shape in the units of ``VOCABULARY``; a law may have derivations of
    its ``own``. Columns that are given or cannot be derived are not in the result.
    """
    derived: dict[str, Array] = {}
    notes: dict[str, str] = {}
    for step in plan(given, targets, own):
        values = [derived[name] if name in derived else given[name] for name in step.needs]
        with np.errstate(all="ignore"):  # rows that are not used may hold anything
            derived[step.result] = np.asarray(step.function(*values), float)
        notes[step.result] = step.text
    return derived, notes


def ways(name: str, own: Sequence[Derivation] = ()) -> str:
    """Returns what ``name`` can be derived from, as the end of a message; empty if nothing."""
    texts = [" and ".join(d.needs) for d in (*DERIVATIONS, *own) if d.result == name]
    return f"; it can be derived from {', or from '.join(texts)}" if texts else ""


def same_quantity(variable: Variable) -> bool:
    """Tells whether a law's variable is the vocabulary's of that name, since laws reuse letters."""
    units = {VOCABULARY[variable.name].unit if variable.name in VOCABULARY else "", variable.unit}
    return len(units) == 1 or units == {"1", "experts"}  # some laws take a count as a pure number


def in_unit(variable: Variable, word: str | None) -> Variable:
    """Returns the variable as a fit has it: a loss stays in bits a byte if its unit says so.

    Laws of nats a token fit bits a byte as well: their coefficients of the loss are then in these.
    """
    stays = word == BITS_A_BYTE and variable.unit == LOSS.unit
    return replace(variable, unit=BITS_A_BYTE) if stays else variable


def factor(variable: Variable, word: str) -> float:
    """Returns the factor that converts a column in the unit ``word`` to the variable's unit.

    ``word`` is a number above 0, the variable's own unit, or a word for another: M (millions of
    parameters or tokens), PF-days, percent, bits (a loss in bits per token).
    """
    words: dict[str, float] = {**_TABLE["words"].get(variable.unit, {}), variable.unit: 1.0}
    for known in (word, word.removesuffix("s")):  # FLOPs are FLOP
        if known in words:
            return words[known]
    try:
        value = number(word)
    except ValueError:
        value = math.nan
    if not POSITIVE.holds(np.array(value)):
        allowed = ", ".join([*words, "a number above 0, such as 1e6"])
        raise UserError(
            f"unit of {variable.name} is {word!r}; allowed for {variable.unit}: {allowed}"
        )
    return value


def refuse_unit(variable: Variable, column: str, declared: str | None, word: str | None) -> None:
    """Refuses a column whose declared unit is of another quantity than the variable's, or of none.

    It also refuses a ``word`` that would convert a column in the variable's own unit.
    """
    quantities = _TABLE["quantities"]
    if variable.unit not in quantities or declared not in [*quantities, "1"]:
        return
    if declared == variable.unit:
        if word is not None and factor(variable, word) != 1:
            raise UserError(
                f"column {column} is in {declared}, as its table says; leave "
                f"--unit {variable.name}={word} out"
            )
        return
    if (declared, variable.unit, word) == ("bits/token", "nats/token", "bits"):
        return
    remedy = f"map a column in {variable.unit}"
    if (declared, variable.unit) == ("bits/token", "nats/token"):
        remedy = f"say so with --unit {variable.name}=bits"
    elif (declared, variable.unit) == ("bits/byte", "nats/token"):
        remedy += (
            "; bits a byte and nats a token differ by the text's bytes a token, and a fit stays in "
            f"bits a byte with --unit {variable.name}={BITS_A_BYTE}"
        )
    raise UserError(
        f"column {column} is in {declared}, and {variable.name} in {variable.unit}; {remedy}"
    )
