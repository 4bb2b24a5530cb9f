"""Laws as tables: ``NAME.toml`` beside the module of a law holds its numbers and its words.

The keys of a table are the fields of ``PowerLawSum``, ``GeneralLaw`` or ``Formula``, with

- ``variables``, ``outputs`` and ``response``: name -> the fields in which the variable differs from
  the vocabulary's; one with a unit is the law's own. ``domain`` names one of ``base.py``;
- ``parameters``: name -> unit, bounds, meaning, scale and starts; ``published``: name -> value;
- ``terms``: coefficient -> variable -> exponent, with a minus where the variable is below the line.
  The variable may be ``1-S``. One term is a straight line in logarithms. A law without terms has a
  function in its module;
- ``products``: result -> variable -> exponent, times the constant RESULT_coefficient; and
  ``quotients`` of two of these or of variables. They make a formula. Any other formula has a
  function in its module;
- ``variants``, the other forms. One that is ``like`` another has the keys of that one and its own;
  the law itself is the form without a name.

Texts may be laid out freely, and ``texts`` holds those that several forms name.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from moelaws.laws import base
from moelaws.laws.base import Columns, FitProtocol, FittableLaw, Formula, Law, Parameter, Variable
from moelaws.laws.forms import GeneralLaw, power_law, power_law_sum
from moelaws.laws.terms import Base, Power, Term, log, one_minus
from moelaws.laws.vocabulary import LOSS, VOCABULARY
from moelaws.spec.errors import refuse_unknown
from moelaws.spec.from_toml import table_beside


def law_beside(
    module: str,
    formulas: Mapping[str, Callable[[Columns], Any]] = {},
    kind: type[FittableLaw] = GeneralLaw,
    **code: Any,
) -> tuple[Any, dict[str, Any]]:
    """Returns the law in the table beside ``module`` (its ``__file__``), and its other forms.

    ``formulas`` has the function of each form that is a formula, by the form's name; the law itself
    has the name "". ``code`` holds the other fields of forms of this ``kind``, which have no terms.
    """
    whole = table_beside(module)
    texts, forms = whole.pop("texts", {}), {"": whole, **whole.pop("variants", {})}
    laws = {}
    for name, own in forms.items():
        stated = {"id": whole["id"], **forms.get(own.pop("like", None), {}), **own, "variant": name}
        own_code = {"function": formulas[name]} if name in formulas else code
        laws[name] = _law(_plain(stated, texts), kind, own_code)
    return laws.pop(""), laws


def _plain(data: Any, texts: Mapping[str, str]) -> Any:
    """Returns data with tuples for lists, and with each text, or that of a name, on one line."""
    if isinstance(data, str):
        return " ".join(texts.get(data, data).split())
    if isinstance(data, list):
        return tuple(_plain(each, texts) for each in data)
    return {k: _plain(own, texts) for k, own in data.items()} if isinstance(data, dict) else data


def _law(own: dict[str, Any], kind: type[FittableLaw], code: Mapping[str, Any]) -> Law:
    variables = {v.name: v for v in _variables(own["variables"])}
    own["variables"] = (*variables.values(),)
    if "outputs" in own:
        return _formula(**own, **code)
    (own["response"],) = _variables(own["response"]) if "response" in own else (LOSS,)
    own["protocol"] = FitProtocol(**own["protocol"])
    published = own.pop("published", {})
    parameters = {
        name: Parameter(name, unit, low, high, meaning, scale, published.get(name), starts)
        for name, (unit, low, high, meaning, scale, starts) in own.pop("parameters").items()
    }
    if "terms" not in own:
        return kind(**own, **code, parameters=(*parameters.values(),))

    powers = own["terms"].values()
    bases = (name.removeprefix("1-") for each in powers for name in each)
    refuse_unknown("terms: unknown variable", bases, variables)
    named = (*own["terms"], *(x.removeprefix("-") for each in powers for x in each.values()))
    refuse_unknown("terms: unknown parameter", named, parameters)

    def power(name: str, exponent: str) -> Power:
        variable = variables[name.removeprefix("1-")]
        base = Base(variable, name, log(name)) if name in variables else one_minus(variable)
        return Power(base, parameters[exponent.removeprefix("-")], exponent.startswith("-"))

    terms = [
        Term(parameters[name], tuple(power(*each) for each in powers.items()))
        for name, powers in own.pop("terms").items()
    ]
    if len(terms) == 1:
        return power_law(*terms, **own)
    return power_law_sum(terms, [*parameters], **own)


def _variables(said: Mapping[str, Any]) -> list[Variable]:
    return [_variable(name, **own) for name, own in said.items()]


def _variable(name: str, domain: str = "", **own: Any) -> Variable:
    if domain:
        own["domain"] = getattr(base, domain)
    return Variable(name, **own) if "unit" in own else replace(VOCABULARY[name], **own)


def _formula(
    outputs: Mapping[str, Any],
    products: Mapping[str, Mapping[str, str]] = {},
    constants: Mapping[str, float] = {},
    quotients: Mapping[str, tuple[str, str]] = {},
    **own: Any,
) -> Formula:
    def of_products(columns: Columns) -> dict[str, Any]:
        found: dict[str, Any] = {**columns}
        for name, powers in products.items():
            found[name] = constants[f"{name}_coefficient"]
            for x, exponent in powers.items():
                found[name] = found[name] * columns[x] ** constants[exponent]
        return found | {name: found[x] / found[y] for name, (x, y) in quotients.items()}

    own = {"function": of_products} | own
    return Formula(outputs=(*_variables(outputs),), constants=constants, **own)
