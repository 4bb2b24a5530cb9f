"""Which column of a table holds which variable of a law, and which variables are derived."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moelaws.laws.base import Derivation, FittableLaw, Variable
from moelaws.laws.vocabulary import (
    LOSS,
    VOCABULARY,
    factor,
    in_unit,
    plan,
    refuse_unit,
    same_quantity,
    ways,
)
from moelaws.spec.errors import ColumnsError, UserError, listed


@dataclass(frozen=True)
class Sources:
    """Where the variables of a fit come from, and those that others are derived from."""

    columns: dict[str, str]  # variable -> the table's column
    derivations: tuple[Derivation, ...]  # of the other variables, in their order
    variables: dict[str, Variable]  # name -> declaration, of all of them


def check_comparable(laws: Sequence[FittableLaw], mapping: Mapping[str, str]) -> None:
    """Refuses laws that cannot be compared, and a mapping of variables that none of them has."""
    refs = [law.ref for law in laws]
    if len(set(refs)) < len(refs):
        raise UserError(f"laws: {', '.join(refs)}: one is named twice")
    if len(refs) < 2:
        raise UserError(f"laws: {', '.join(refs) or 'none'}: a comparison needs at least two")
    if len({(law.response.name, law.response.unit) for law in laws}) > 1:
        responses = ", ".join(f"{law.ref}: {law.response.name}" for law in laws)
        raise UserError(
            f"these laws predict different quantities and cannot be compared ({responses})"
        )
    variables = {v.name for law in laws for v in (*law.variables, law.response)}
    for name in mapping:
        if name not in variables and name not in VOCABULARY:
            raise UserError(
                f"mapping: {name!r} is not a variable of any of {', '.join(refs)}; they have "
                f"{', '.join(sorted(variables))}"
            )


def sources(
    law: FittableLaw,
    mapping: Mapping[str, str],
    available: Collection[str],
    empty: Collection[str] = (),
) -> Sources:
    """Returns where the law's variables come from in a table of ``available`` columns.

    A mapped column precedes one of the variable's own name. This precedes a derivation, which
    precedes the variable's default; a default is not in the result. Columns without values are not
    available, and ``empty`` names them only for messages.

    Raises:
        UserError: for a mapping of an unknown variable, a mapped column that is not there, or
            a variable that has no column and cannot be derived.
    """
    declared = {v.name: v for v in (*law.variables, law.response)}
    for name in mapping:
        if name not in declared and name not in VOCABULARY:
            others = ", ".join(n for n in VOCABULARY if n not in declared)
            raise UserError(
                f"mapping: {name!r} is not a variable of {law.ref}; it has {', '.join(declared)} "
                f"(others may be derived from {others})"
            )
    columns = {n: mapping.get(n, n) for n in declared if n in mapping or n in available}
    helpers = {name: mapping.get(name, name) for name in VOCABULARY if name not in declared}
    missing = [v for v in law.variables if v.name not in columns and v.default is None]
    known = {name for name in columns if same_quantity(declared[name])}
    known |= {n for n, column in helpers.items() if n in mapping or column in available}
    underived = [v.name for v in missing if same_quantity(v)]
    derivations = plan(known, underived, law.derivations)
    derived = {step.result for step in derivations}
    used = {name for step in derivations for name in step.needs if name not in derived}
    columns |= {name: helpers[name] for name in helpers if name in used or name in mapping}

    for name, column in columns.items():
        twin = next((n for n in declared if columns.get(n) == column), name)
        # A null model may say both, that N is D and D too. Otherwise it is a slip.
        if twin != name and name in declared and not {twin, name} <= mapping.keys():
            raise UserError(
                f"column {column!r} is mapped to {twin} and {name} of {law.ref}; each needs a "
                "column of its own"
            )
    hollow = [name for name in empty if name in declared or name in VOCABULARY]
    lacking = {name: column for name, column in columns.items() if column not in available}
    more = ""
    for v in (*missing, law.response):
        if v.name in columns or v.name in derived:
            continue
        more = ways(v.name, law.derivations) if same_quantity(v) else ""
        if v.name in empty and not more:
            raise UserError(
                f"the table's column {v.name}, for the variable {v.name} ({v.description}), is "
                "empty in all rows"
            )
        lacking[v.name] = v.name
    if lacking:
        each = ", none ".join(f"{column!r} for {name}" for name, column in lacking.items())
        more = more if len(lacking) == 1 else ""
        more += f"; empty in all rows: {', '.join(hollow)}" if hollow else ""
        text = f"no column {each} of {law.ref}; there are {listed(available)}{more}"
        raise ColumnsError(text, likely(lacking, set(available) - {*columns.values()}), {})
    variables = {n: declared.get(n) or VOCABULARY[n] for n in (*columns, *sorted(derived))}
    return Sources(columns, derivations, variables)


def likely(lacking: Iterable[str], free: Collection[str]) -> dict[str, str]:
    """Returns the one ``free`` column for each of the variables whose name speaks of it, if any."""
    guesses = dict[str, str]()
    for name in lacking:
        about = VOCABULARY.get(name, LOSS)
        words = {about.unit, about.description.split()[-1]} - {"1"}
        stems = [word.lower()[:5] for word in words]
        near = [column for column in free if any(stem in column.lower() for stem in stems)]
        guesses |= {name: near[0]} if len(near) == 1 else {}
    return guesses


def unit_factors(
    origins: Sources, units: Mapping[str, str], declared: Mapping[str, str]
) -> dict[str, float]:
    """Returns the factors of the columns of variables whose unit the fit states.

    ``units`` maps variables to words or numbers, as ``vocabulary.factor`` takes them. ``declared``
    maps columns to the unit that their table declares, which must be of the same quantity. A loss
    whose stated unit is bits/byte stays in it.
    """
    for name in units:
        if name not in origins.columns:
            raise UserError(
                f"unit of {name!r}: the table has no column for it; units can be given for "
                f"{', '.join(origins.columns)}"
            )
    variables = {n: in_unit(v, units.get(n)) for n, v in origins.variables.items()}
    factors = {name: factor(variables[name], word) for name, word in units.items()}
    for name, column in origins.columns.items():
        refuse_unit(variables[name], column, declared.get(column), units.get(name))
    return factors
