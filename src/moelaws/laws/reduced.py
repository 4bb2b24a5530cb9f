"""The form of a law that rows determine in which some of its variables are constant.

A term whose variables are all constant is a constant, and merges into the irreducible loss. So
Chinchilla's law can be fitted to runs of the same number of tokens, as L = A/N^alpha + E.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.forms import GeneralLaw, PowerLawSum, power_law_sum
from moelaws.laws.terms import Term

NAME = "reduced"  # of the variant


def reduced(law: FittableLaw, constant: Collection[str]) -> FittableLaw:
    """Returns ``law`` without the parameters that rows of ``constant`` variables do not determine.

    It is named ``law:reduced``. Returns the law itself if no parameter is lost, or if its kind does
    not say which could be.
    """
    merged = law
    if isinstance(law, PowerLawSum):
        merged = _merged(law, constant)
    elif isinstance(law, GeneralLaw):
        held = {name for variable in constant for name in law.only_with.get(variable, ())}
        merged = _held(law, held) if held else law
    if len(merged.parameters) == len(law.parameters):
        return law
    names = ", ".join(v.name for v in law.variables if v.name in constant)
    grid = {name: starts for name, starts in law.protocol.grid.items() if name in merged.names}
    return replace(
        merged,
        title=f"{law.title}, at constant {names}",
        variant=f"{law.variant}, {NAME}" if law.variant else NAME,
        protocol=replace(law.protocol, grid=grid),
    )


def _merged(law: PowerLawSum, constant: Collection[str]) -> PowerLawSum:
    """Returns the sum with one term for each set of powers that vary."""
    terms: dict[frozenset[tuple[str, str, bool]], Term] = {}
    for term in law.terms:
        powers = tuple(p for p in term.powers if p.base.variable.name not in constant)
        key = frozenset((p.base.text, p.exponent.name, p.inverse) for p in powers)
        if key not in terms or powers == term.powers:  # a whole term names the merged one
            terms[key] = replace(term, powers=powers)
    alike = ("id", "title", "source", "response", "protocol", "errata")
    return power_law_sum([*terms.values()], **{name: getattr(law, name) for name in alike})


def _held(law: GeneralLaw, names: Collection[str]) -> GeneralLaw:
    """Returns the law with the parameters ``names`` at fixed values: exponents 0, others 1."""
    free = [i for i, parameter in enumerate(law.parameters) if parameter.name not in names]

    def whole(theta_BP: Array) -> Array:
        vectors = np.zeros((len(theta_BP), len(law.parameters)))
        vectors[:, free] = theta_BP
        return vectors

    def function(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
        value, jacobian = law.function(whole(theta_BP), columns)
        return value, jacobian[:, free]

    def second(theta_BP: Array, columns: Columns, psi_Bn: Array) -> Array:
        assert law.second is not None
        return law.second(whole(theta_BP), columns, psi_Bn)[:, free][:, :, free]

    values = {p.name: 0 if p.scale == "linear" else 1 for p in law.parameters if p.name in names}
    return replace(
        law,
        equation=f"{law.equation}, {', '.join(f'{name} = {x}' for name, x in values.items())}",
        parameters=tuple(law.parameters[i] for i in free),
        function=function,
        second=law.second and second,
    )
