"""From a table to the arrays that a law is fitted to: mapping, selection, checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.laws.base import Array, Law, Mask, Variable
from moelaws.laws.mapping import mapped
from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows, select
from moelaws.spec.study import Fit


@dataclass(frozen=True)
class Rows:
    """The rows of one part of a fit.

    Attributes:
        where: the split column's value; empty where the fit is not split.
        columns: variable -> (n,) of the fitted rows, sorted so that the table's order is nothing.
        response: (n,) of the fitted rows.
        held_columns, held_response: the same of the held-out rows.
        left_out: reason -> number of rows, over the whole table.
    """

    where: dict[str, float]
    columns: dict[str, Array]
    response: Array
    held_columns: dict[str, Array]
    held_response: Array
    left_out: dict[str, int]


def parts(law: Law, table: pd.DataFrame, spec: Fit, label: str) -> list[Rows]:
    """The rows of each part of the fit, checked.

    Rows whose status is not ``completed`` are left out. ``label`` names the table in messages.

    Raises:
        UserError: for a column that is missing or holds no numbers, a value outside a variable's
            domain (with its row), a split or a hold-out that leaves nothing.
    """
    names = mapped(law, spec.mapping)
    used = {name: _numbers(table, column, label, f"{name} of {law.id}") for name, column in names}
    if "run_id" in table.columns and table["run_id"].duplicated().any():
        twice = table["run_id"][table["run_id"].duplicated()].iloc[0]
        raise UserError(f"{label}: column run_id: {twice} stands twice; one row a run is allowed")

    left_out: dict[str, int] = {}
    kept = _completed(table, left_out)
    wanted = np.broadcast_to(_select(table, used, spec.rows, label), kept.shape)
    _count(left_out, f"not in rows: {spec.rows}", kept & ~wanted)
    kept = kept & wanted
    held = _held(table, used, spec, label)
    if spec.holdout and not (kept & held).any():
        raise UserError(
            f"{label}: holdout {spec.holdout!r} selects no row of the {kept.sum()} used"
        )

    groups: list[tuple[dict[str, float], Mask]] = [({}, kept)]
    if spec.split_by:
        split = _numbers(table, spec.split_by, label, "split_by")
        _count(left_out, f"no value of {spec.split_by}", kept & np.isnan(split))
        values = np.unique(split[kept & ~np.isnan(split)])
        groups = [({spec.split_by: float(value)}, kept & (split == value)) for value in values]
    if not groups or not kept.any():
        raise UserError(f"{label}: no row is left to fit; left out: {_listed(left_out)}")

    for variable in (*law.variables, law.response):
        _check(table, variable, dict(names)[variable.name], used[variable.name], kept, label)
    return [
        _rows(law, used, where, group & ~held, group & held, left_out, spec, label)
        for where, group in groups
    ]


def selected_rows(
    table: pd.DataFrame, law: Law, spec: Fit, where: Mapping[str, float]
) -> tuple[Mask, Mask]:
    """Masks over the table's rows: those fitted and those held out in the part ``where``."""
    used = {
        name: _numbers(table, column, "table", name) for name, column in mapped(law, spec.mapping)
    }
    kept = _completed(table, {}) & _select(table, used, spec.rows, "table")
    for column, value in where.items():
        kept = kept & np.isclose(_numbers(table, column, "table", column), value, rtol=1e-9)
    held = _held(table, used, spec, "table")
    return kept & ~held, kept & held


def used_columns(law: Law, table: pd.DataFrame, spec: Fit) -> list[str]:
    """The table's columns that decide the fit, sorted."""
    columns = {column for _, column in mapped(law, spec.mapping)} | {spec.split_by, "status"}
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


def _held(table: pd.DataFrame, used: dict[str, Array], spec: Fit, label: str) -> Mask:
    if not spec.holdout.strip():
        return np.zeros(len(table), dtype=bool)
    return np.asarray(_select(table, used, spec.holdout, label), dtype=bool)


def _select(table: pd.DataFrame, used: dict[str, Array], expression: str, label: str) -> Mask:
    """``spec.rows.select`` over the numeric columns and, where no column has it, a variable."""
    numeric = {
        str(name): column.to_numpy(dtype=float, na_value=np.nan)
        for name, column in table.items()
        if pd.api.types.is_numeric_dtype(column)
    }
    try:
        mask: Mask = np.asarray(select(used | numeric, expression))
    except UserError as error:
        raise UserError(f"{label}: {error}") from None
    return mask


def _numbers(table: pd.DataFrame, column: str, label: str, role: str) -> Array:
    """A column as floats; an empty cell is NaN."""
    if column not in table.columns:
        raise UserError(
            f"{label}: no column {column!r} for {role}; there are "
            f"{', '.join(map(str, table.columns))}"
        )
    values = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.isnan(values) & table[column].notna().to_numpy(dtype=bool)
    if bad.any() and not pd.api.types.is_numeric_dtype(table[column]):
        row = int(np.argmax(bad))
        raise UserError(
            f"{label}: row {row + 1}: column {column} is {table[column].iloc[row]!r}; "
            "a number is wanted"
        )
    return np.asarray(values)


def _check(
    table: pd.DataFrame, variable: Variable, column: str, values: Array, kept: Mask, label: str
) -> None:
    wrong = kept & ~variable.domain.holds(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        run = f" (run {table['run_id'].iloc[row]})" if "run_id" in table.columns else ""
        also = f", as in {wrong.sum() - 1} more rows" if wrong.sum() > 1 else ""
        raise UserError(
            f"{label}: row {row + 1}{run}: column {column} is {values[row]:.6g}{also}; "
            f"{variable.name} must be {variable.domain.text}; such rows can be left out by a rows "
            f"expression"
        )


def _rows(
    law: Law,
    used: dict[str, Array],
    where: dict[str, float],
    fitted: Mask,
    held: Mask,
    left_out: dict[str, int],
    spec: Fit,
    label: str,
) -> Rows:
    n, needed = int(fitted.sum()), len(law.parameters)
    part = "".join(f" at {column} = {value:.6g}" for column, value in where.items())
    if n < needed:
        raise UserError(
            f"{label}: {n} rows{part} are left to fit the {needed} parameters of {law.id}; "
            f"at least {needed} are needed. Left out: {_listed(left_out)}"
            + (f"; held out: {int(held.sum())}" if spec.holdout else "")
        )
    names = [variable.name for variable in law.variables]
    response = used[law.response.name]
    order = np.lexsort([response[fitted], *(used[name][fitted] for name in names)])
    return Rows(
        where=where,
        columns={name: used[name][fitted][order] for name in names},
        response=response[fitted][order],
        held_columns={name: used[name][held] for name in names},
        held_response=response[held],
        left_out=left_out,
    )


def _count(left_out: dict[str, int], reason: str, mask: Mask) -> None:
    if mask.any():
        left_out[reason] = int(mask.sum())


def _listed(left_out: dict[str, int]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in left_out.items()) or "none"
