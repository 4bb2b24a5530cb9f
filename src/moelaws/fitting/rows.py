"""From a table to the arrays that a law is fitted to: mapping, selection, checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.fitting.variables import (
    Variables,
    check_values,
    numbers,
    read_variables,
    row_name,
)
from moelaws.laws.base import Array, FittableLaw, Mask
from moelaws.laws.mapping import sources
from moelaws.laws.vocabulary import refuse_unit
from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows, select
from moelaws.spec.study import Fit
from moelaws.tables.sweeps import in_sweep


@dataclass(frozen=True)
class Rows:
    """The rows of one part of a fit.

    Attributes:
        where: the split column's value; empty where the fit is not split.
        columns: variable -> (n,) of the fitted rows, sorted so that the table's order is nothing.
        response: (n,) of the fitted rows.
        held_columns, held_response: the same of the held-out rows.
        left_out: reason -> number of rows, over the whole table.
        notes: unit conversions and derivations, such as "D = C / (6 N_active)".
        weights: (n,) of the fitted rows' squared residuals on the objective's scale, of mean 1;
            None where the fit names no standard error.
        groups: (n,) the bootstrap's block of each fitted row, counted from 0; None for rows.
        rollout: (n,) of the fitted rows, what a roll-out cuts at; None where there is none.
    """

    where: dict[str, float]
    columns: dict[str, Array]
    response: Array
    held_columns: dict[str, Array]
    held_response: Array
    left_out: dict[str, int]
    notes: tuple[str, ...] = ()
    weights: Array | None = None
    groups: NDArray[np.intp] | None = None
    rollout: Array | None = None


def parts(
    law: FittableLaw, table: pd.DataFrame, spec: Fit, label: str, units: Mapping[str, str] = {}
) -> list[Rows]:
    """The rows of each part of the fit, checked.

    Rows whose status is not ``completed`` are left out. ``label`` names the table in messages;
    ``units`` are those that the table itself declares, by column.

    Raises:
        UserError: for a column that is missing, holds no numbers or another quantity, a value
            outside a variable's domain (with its row), a split or a hold-out that leaves nothing.
    """
    given = read_variables(law, table, spec, label, units)
    left_out: dict[str, int] = {}
    kept = _completed(table, left_out)
    swept = _in_sweep(table, spec.sweep, label)
    _count(left_out, f"not of the sweep {spec.sweep}", kept & ~swept)
    kept = kept & swept
    wanted = _select(table, given, spec.rows, label)
    _count(left_out, f"not in rows: {spec.rows}", kept & ~wanted)
    kept = kept & wanted
    _refuse_twice(table, kept, label)
    held = _held(table, given, spec, label)
    if spec.holdout and not (kept & held).any():
        raise UserError(
            f"{label}: holdout {spec.holdout!r} selects no row of the {kept.sum()} used"
        )

    groups: list[tuple[dict[str, float], Mask]] = [({}, kept)]
    if spec.split_by:
        split = numbers(table, spec.split_by, label, "split_by")
        _count(left_out, f"no value of {spec.split_by}", kept & np.isnan(split))
        values = np.unique(split[kept & ~np.isnan(split)])
        groups = [({spec.split_by: float(value)}, kept & (split == value)) for value in values]
    if not groups or not kept.any():
        only = "; of a column status only completed counts" if "status" in table.columns else ""
        raise UserError(f"{label}: no row is left to fit; left out: {_listed(left_out)}{only}")

    groups = _determined(groups, held, len(law.parameters), left_out)
    check_values(given, table, kept, spec, label, units)
    se = _standard_errors(law, table, given, kept & ~held, spec, label, units)
    blocks = _blocks(table, kept & ~held, spec, label)
    cut = _cut(table, given, spec, label)
    return [
        _rows(
            law, given, where, group & ~held, group & held, left_out, se, blocks, cut, spec, label
        )
        for where, group in groups
    ]


def _determined(
    groups: list[tuple[dict[str, float], Mask]], held: Mask, needed: int, left_out: dict[str, int]
) -> list[tuple[dict[str, float], Mask]]:
    """The parts of a split fit with rows enough for its parameters; all where none has (refused).

    A budget that lost runs must not take the others' fits with it.
    """
    enough = [(where, group) for where, group in groups if (group & ~held).sum() >= needed]
    if not enough:
        return groups
    for where, group in groups:
        if (group & ~held).sum() < needed:
            at = ", ".join(f"{column} = {value:.6g}" for column, value in where.items())
            _count(left_out, f"fewer than {needed} rows at {at}", group)
    return enough


def selected_rows(
    table: pd.DataFrame, law: FittableLaw, spec: Fit, where: Mapping[str, float]
) -> tuple[Mask, Mask]:
    """Masks over the table's rows: those fitted and those held out in the part ``where``."""
    given = read_variables(law, table, spec, "table")
    kept = _completed(table, {}) & _in_sweep(table, spec.sweep, "table")
    kept = kept & _select(table, given, spec.rows, "table")
    for column, value in where.items():
        kept = kept & np.isclose(numbers(table, column, "table", column), value, rtol=1e-9, atol=0)
    held = _held(table, given, spec, "table")
    return kept & ~held, kept & held


def used_columns(law: FittableLaw, table: pd.DataFrame, spec: Fit) -> list[str]:
    """The table's columns that decide the fit, sorted."""
    columns = set(sources(law, spec.mapping, list(map(str, table.columns))).columns.values())
    columns |= {"status", spec.split_by, spec.weights, spec.resample_by, spec.rollout}
    columns |= {"sweep"} if spec.sweep else set()
    columns |= {clause.column for clause in parse_rows(spec.rows) + parse_rows(spec.holdout)}
    return sorted(columns & set(table.columns))


def digest(table: pd.DataFrame, columns: Iterable[str]) -> str:
    """SHA-256 over the content of ``columns``, whatever the order of the rows."""
    lines = [
        "\x1f".join(repr(value) for value in row)
        for row in zip(*(_plain(table[column]) for column in columns), strict=True)
    ]
    text = "\x1f".join(columns) + "\n" + "\n".join(sorted(lines))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(column: pd.Series) -> list[object]:
    if pd.api.types.is_numeric_dtype(column):
        return list(column.to_numpy(dtype=float, na_value=np.nan).tolist())
    return [str(value) for value in column]


def _completed(table: pd.DataFrame, left_out: dict[str, int]) -> Mask:
    kept = np.ones(len(table), dtype=bool)
    if "status" in table.columns:
        status = table["status"].astype(str)
        kept = (status == "completed").to_numpy(dtype=bool)
        for value, count in status[~kept].value_counts().items():
            left_out[f"status is {value}"] = int(count)
    return kept


def _in_sweep(table: pd.DataFrame, sweep: str, label: str) -> Mask:
    if not sweep:
        return np.ones(len(table), dtype=bool)
    try:
        return in_sweep(table, sweep)
    except UserError as error:
        raise UserError(f"{label}: {error}") from None


def _refuse_twice(table: pd.DataFrame, kept: Mask, label: str) -> None:
    """Refuse a run_id that stands in two of the rows used; empty ones are no ids."""
    if "run_id" not in table.columns:
        return
    ids = table["run_id"][kept].dropna()
    again = ids.index[ids.duplicated()]
    if len(again):
        rows = np.flatnonzero(kept & (table["run_id"] == ids[again[0]]).to_numpy(dtype=bool)) + 1
        raise UserError(
            f"{label}: rows {rows[0]} and {rows[1]}: column run_id: {ids[again[0]]} stands twice; "
            "one row a run is allowed"
        )


def _held(table: pd.DataFrame, given: Variables, spec: Fit, label: str) -> Mask:
    if not spec.holdout.strip():
        return np.zeros(len(table), dtype=bool)
    return _select(table, given, spec.holdout, label)


def _select(table: pd.DataFrame, given: Variables, expression: str, label: str) -> Mask:
    """``spec.rows.select`` over the numeric columns and the variables."""
    try:
        mask = np.asarray(select(_numeric(table, given), expression), dtype=bool)
    except UserError as error:
        raise UserError(f"{label}: {error}") from None
    return np.array(np.broadcast_to(mask, len(table)))


def _numeric(table: pd.DataFrame, given: Variables) -> dict[str, Array]:
    """What a row expression may name: the variables and the numeric columns.

    Where a column has a variable's name but another one stands for it, the column is meant.
    """
    own = {n: x for n, x in given.values.items() if given.sources.columns.get(n, n) == n}
    numeric = {
        str(name): column.to_numpy(dtype=float, na_value=np.nan)
        for name, column in table.items()
        if pd.api.types.is_numeric_dtype(column)
    }
    return given.values | numeric | own


def _cut(table: pd.DataFrame, given: Variables, spec: Fit, label: str) -> Array | None:
    """What a roll-out cuts at in each row, read as a hold-out reads it; None without one."""
    if not spec.rollout:
        return None
    known = _numeric(table, given)
    if spec.rollout in known:
        return known[spec.rollout]
    return numbers(table, spec.rollout, label, "rollout")


def _standard_errors(
    law: FittableLaw,
    table: pd.DataFrame,
    given: Variables,
    fitted: Mask,
    spec: Fit,
    label: str,
    units: Mapping[str, str],
) -> Array | None:
    """Each row's standard error on the objective's scale but for a factor; None: none is named."""
    if not spec.weights:
        return None
    name, word = law.response.name, spec.units.get(law.response.name)
    se = numbers(table, spec.weights, label, "weights")
    try:
        refuse_unit(law.response, spec.weights, units.get(spec.weights), word)
    except UserError as error:
        raise UserError(f"{label}: {error}") from None
    wrong = fitted & ~(np.isfinite(se) & (se > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UserError(
            f"{label}: {row_name(table, row)}: column {spec.weights} is {se[row]:.6g}, as the "
            f"standard error of {name}; it must be a finite number above 0 in every fitted row"
        )
    with np.errstate(all="ignore"):  # rows that are not fitted may hold anything
        return se / given.values[name] if law.log_response else se


def _blocks(table: pd.DataFrame, fitted: Mask, spec: Fit, label: str) -> NDArray[np.object_] | None:
    """The value of ``resample_by`` in each row, as text or number; None where rows are drawn."""
    if not spec.resample_by:
        return None
    if spec.resample_by not in table.columns:
        raise UserError(
            f"{label}: no column {spec.resample_by!r} for resample_by; there are "
            f"{', '.join(map(str, table.columns))}"
        )
    column = table[spec.resample_by]
    missing = fitted & column.isna().to_numpy(dtype=bool)
    if missing.any():
        row = int(np.argmax(missing))
        raise UserError(
            f"{label}: {row_name(table, row)}: column {spec.resample_by} is empty; resample_by "
            "wants a block for every fitted row"
        )
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan).astype(object)
    return column.astype(str).to_numpy(dtype=object)


def _rows(
    law: FittableLaw,
    given: Variables,
    where: dict[str, float],
    fitted: Mask,
    held: Mask,
    left_out: dict[str, int],
    se: Array | None,
    blocks: NDArray[np.object_] | None,
    cut: Array | None,
    spec: Fit,
    label: str,
) -> Rows:
    n, needed = int(fitted.sum()), len(law.parameters)
    part = "".join(f" at {column} = {value:.6g}" for column, value in where.items())
    if n < needed:
        raise UserError(
            f"{label}: {n} rows{part} are left to fit the {needed} parameters of {law.ref}; "
            f"at least {needed} are needed. Left out: {_listed(left_out)}"
            + (f"; held out: {int(held.sum())}" if spec.holdout else "")
        )
    names = [v.name for v in law.variables if v.name in given.values]
    response = given.values[law.response.name]
    weights = None if se is None else _weights(se[fitted])
    groups = None if blocks is None else np.unique(blocks[fitted], return_inverse=True)[1]
    if groups is not None and not groups.any():
        raise UserError(
            f"{label}: resample_by {spec.resample_by}: all {n} rows{part} are one block; at least "
            "2 are needed to draw from"
        )
    keys = [given.values[name][fitted] for name in names]
    order = np.lexsort([x for x in (groups, weights) if x is not None] + [response[fitted], *keys])
    return Rows(
        where=where,
        columns={name: given.values[name][fitted][order] for name in names},
        response=response[fitted][order],
        held_columns={name: given.values[name][held] for name in names},
        held_response=response[held],
        left_out=left_out,
        notes=given.notes,
        weights=None if weights is None else weights[order],
        groups=None if groups is None else groups[order],
        rollout=None if cut is None else cut[fitted][order],
    )


def _weights(se: Array) -> Array:
    """(s / se)^2 with s such that their mean is 1, to the last digit in any order of the rows."""
    weights = (se.min() / se) ** 2
    return np.asarray(weights / np.sort(weights).mean())


def _count(left_out: dict[str, int], reason: str, mask: Mask) -> None:
    if mask.any():
        left_out[reason] = int(mask.sum())


def _listed(left_out: dict[str, int]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in left_out.items()) or "none"
