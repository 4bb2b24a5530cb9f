"""A table's columns as a law's variables: numbers, units, derivations and allowed values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from moelaws.laws.base import FRACTION, SPARSITY, Array, Derivation, FittableLaw, Mask, Variable
from moelaws.laws.mapping import Sources, sources, unit_factors
from moelaws.laws.vocabulary import BITS_A_BYTE, MAX_LOSS, SOME_ROW_ABOVE, USUAL_UNITS, derive
from moelaws.spec.errors import ColumnsError, UserError, listed, quoted
from moelaws.spec.fit import Fit
from moelaws.tables.foreign import as_numbers, no_number


@dataclass(frozen=True)
class Variables:
    """A law's variables and response over all rows of a table, and what they are derived from."""

    values: dict[str, Array]  # variable -> (n,) in its own unit; NaN where the table has no value
    sources: Sources  # the columns and derivations behind the variables
    factors: dict[str, float]  # variable -> what its column was multiplied by for its unit
    notes: tuple[str, ...]  # unit conversions and derivations, as they are printed


def read_variables(
    law: FittableLaw, table: pd.DataFrame, spec: Fit, units: Mapping[str, str] = {}
) -> Variables:
    """Returns the law's variables in ``table``, read by the fit's mapping and units.

    ``units`` maps columns to the unit that the table itself declares. A UserError refuses a column
    that is missing or holds no numbers, and a mapping or a unit that is not allowed.
    """
    origins = column_sources(law, table, spec)
    factors = unit_factors(origins, spec.units, units)
    values = {
        name: numbers(table, column, f"{name} of {law.ref}") * factors.get(name, 1.0)
        for name, column in origins.columns.items()
    }
    derived, texts = derive(values, [step.result for step in origins.derivations], law.derivations)
    notes = [
        f"{name} = {factors[name]:g} x column {column} (unit {spec.units[name]})"
        for name, column in origins.columns.items()
        if factors.get(name, 1.0) != 1.0
    ]
    notes += [
        f"{name} and what is fitted of it are in {BITS_A_BYTE}, as column {column} is"
        for name, column in origins.columns.items()
        if spec.units.get(name) == BITS_A_BYTE
    ]
    return Variables(values | derived, origins, factors, (*notes, *texts.values()))


def column_sources(law: FittableLaw, table: pd.DataFrame, spec: Fit) -> Sources:
    """Returns where the law's variables come from in ``table``, empty columns left aside.

    Tables of imported runs have every column of a study's table, and most are empty: a variable is
    then derived instead. A mapped column is taken even where it is empty.
    """
    mapped = set(spec.mapping.values())
    filled = {n: n in mapped or bool(table[n].notna().any()) for n in map(str, table.columns)}
    empty = [name for name, is_filled in filled.items() if not is_filled]
    try:
        return sources(law, spec.mapping, [name for name in filled if filled[name]], empty)
    except ColumnsError as error:
        known = {v.name: v for v in (*law.variables, law.response)}
        for name, column in {**spec.mapping, **error.columns}.items():
            if name in known and column in table and name not in spec.units:
                error.units |= unit_doubt(known[name], column, as_numbers(table[column]))[1]
        raise


def with_size(law: FittableLaw, table: pd.DataFrame, spec: Fit) -> Fit:
    """Returns the entry with the column that the law's N is in a study's table, which has no N.

    The law's description of N tells which it is. Where it may be total or active parameters and the
    rows tell these apart, a UserError names the choice.
    """
    size = next((v for v in law.variables if v.name == "N"), None)
    if size is None or "N" in spec.mapping or "N" in table:
        return spec
    kinds = [kind for kind in ("total", "active") if kind in size.description]
    end = "_nonemb" if "without embeddings" in size.description else ""
    names = [f"N_{kind}{end}" for kind in kinds or ("total", "active")]
    names = [name for name in names if name in table and table[name].notna().any()]
    if len(names) == 2 and not table[names[0]].equals(table[names[1]]):
        choice = " or ".join(f"--map N={name}" for name in names)
        raise UserError(f"N of {law.ref} ({size.description}) may be either here: say {choice}")
    if not names:
        return spec
    return spec.model_copy(update={"mapping": {**spec.mapping, "N": names[0]}})


def sized_by_compute(law: FittableLaw) -> FittableLaw:
    """Returns the law with N derived of compute and tokens, as tables of others need it.

    A study's entry says which N it means, so there a missing N is a slip.
    """
    sparse = Derivation(
        "N", ("C", "D", "S"), "N = C / (6 D (1 - S))", lambda C, D, S: C / (6 * D * (1 - S))
    )
    dense = Derivation(
        "N", ("C", "D"), "N = C / (6 D) (dense: no S, nor E and k)", lambda C, D: C / (6 * D)
    )
    return replace(law, derivations=(*law.derivations, sparse, dense))


def numbers(table: pd.DataFrame, column: str, role: str) -> Array:
    """Returns a column as floats, with NaN for empty cells; a UserError refuses other texts."""
    require_column(table, column, role)
    cells = table[column]
    values = as_numbers(cells)
    bad = no_number(cells, values)
    if bad.any():
        row = int(np.argmax(bad))
        raise UserError(
            f"row {row + 1}: column {column} is {quoted(cells.iloc[row])}; it must be a number"
        )
    return values


def require_column(table: pd.DataFrame, column: str, role: str) -> None:
    """Refuses a table without ``column``, whose ``role`` the message names."""
    if column not in table.columns:
        raise UserError(f"no column {column!r} for {role}; there are {listed(table.columns)}")


def check_values(
    given: Variables, table: pd.DataFrame, kept: Mask, spec: Fit, units: Mapping[str, str]
) -> None:
    """Refuses values in the ``kept`` rows outside a variable's domain, or in the wrong unit.

    ``units`` are those that the table itself declares, by column; the size of such values is not
    doubted. The UserError names row, run, column or derivation, value and what is allowed.
    """
    doubts, likely = list[str](), dict[str, str]()
    for name, column in given.sources.columns.items():
        if column not in units and name not in spec.units:
            variable = given.sources.variables[name]
            text, unit = unit_doubt(variable, column, given.values[name][kept])
            doubts += [text] if text else []
            likely |= unit
    if doubts:
        raise ColumnsError("; ".join(doubts), {}, likely)
    texts = {step.result: step.text for step in given.sources.derivations}
    for name, variable in given.sources.variables.items():
        wrong = kept & ~variable.domain.holds(given.values[name])
        if not wrong.any():
            continue
        if name in given.sources.columns and np.isnan(given.values[name][kept]).all():
            raise UserError(
                f"the table's column {given.sources.columns[name]}, for the variable {name} "
                f"({variable.description}), is empty in all {kept.sum()} rows"
            )
        row = int(np.argmax(wrong))
        raw = given.values[name][row] / given.factors.get(name, 1.0)
        what = texts[name] if name in texts else f"column {given.sources.columns[name]}"
        also = f", as in {wrong.sum() - 1} more rows" if wrong.sum() > 1 else ""
        by = "--drop-missing (drop_missing: true)" if np.isnan(raw) else "a rows expression"
        raise UserError(
            f"{row_name(table, row)}: {what} is {raw:.6g}{also}; {name} must be "
            f"{variable.domain.text}; such rows can be left out by {by}"
        )


def row_name(table: pd.DataFrame, row: int) -> str:
    """Returns the name of a row in messages: its number from 1, and its run if it has one."""
    run = f" (run {table['run_id'].iloc[row]})" if "run_id" in table.columns else ""
    return f"row {row + 1}{run}"


def unit_doubt(variable: Variable, column: str, values: Array) -> tuple[str, dict[str, str]]:
    """Returns a doubt about values of a size that only another unit explains, and a likely unit."""
    name, values = variable.name, values[np.isfinite(values)]
    positive = values[values > 0]
    if not len(positive):
        return "", {}
    text, unit = "", ""
    if variable.unit in SOME_ROW_ABOVE and positive.max() < SOME_ROW_ABOVE[variable.unit]:
        unit = USUAL_UNITS[variable.unit]
        text = f"at most {positive.max():.6g} {variable.unit}; say its unit with "
        text += f"--unit {name}={unit} or the like"
    elif variable.domain in (SPARSITY, FRACTION) and np.median(positive) > 1:
        unit = "percent"
        text = f"{positive.max():.6g} at most and should not be above 1; if in per cent, say so "
        text += f"with --unit {name}={unit}"
    elif variable.unit == "nats/token" and np.median(positive) > MAX_LOSS:
        text = f"{np.median(positive):.6g} {variable.unit} in the median row; map a column with "
        text += "its logarithm if it is a perplexity"
    elif variable.unit == "nats/token" and len(values) > 4 and len(set(values.tolist())) <= 2:
        text = f"{' or '.join(f'{x:g}' for x in np.unique(values))} in every row, as no losses are"
    if text:
        text = f"column {column} for {name} is {text}; if the column is right, say --unit {name}=1"
    return text, {name: unit} if unit else {}


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What a law is fitted to."""

    columns: dict[str, Array]  # variable -> (n,)
    response: Array  # (n,) in its natural unit
    weights: Array | None = None  # (n,) of squared residuals on the objective's scale, of mean 1
