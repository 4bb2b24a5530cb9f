"""The arrays that a law is fitted to: a table's rows, selected, grouped and checked for a fit."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.fitting.objective import Index
from moelaws.fitting.report import (
    Where,
    estimates_table,
    has_value,
    is_report,
    place,
    read_fit,
)
from moelaws.fitting.variables import (
    Observations,
    Variables,
    check_values,
    column_sources,
    numbers,
    read_variables,
    require_column,
    row_name,
)
from moelaws.laws.base import Array, FittableLaw, Mask
from moelaws.laws.vocabulary import refuse_unit
from moelaws.spec.errors import UserError
from moelaws.spec.fit import ROWS, Fit
from moelaws.spec.rows import names_in, select
from moelaws.spec.words import counted
from moelaws.tables.foreign import as_numbers, read_any, refuse_twice
from moelaws.tables.foreign import columns as columns_of
from moelaws.tables.sweeps import best_trials, completed, in_sweep

# Rows of one value err together: runs of a trunk, checkpoints of a tracker's run, points of one
# fitted curve, runs of one budget.
SHARED = ("trunk", "run_name", "Name", "architecture", "C")
# What trackers call runs that did not come to an end; their last loss is on record as any other
UNFINISHED = {"failed", "running", "crashed", "killed", "canceled", "cancelled", "preempted"}
SMALLEST_ERROR = 1e-4  # A standard error below this part of its value is doubted
# Fewer blocks say too little of their spread, so they count only if the entry names them.
FEWEST_BLOCKS = 4


@dataclass(frozen=True, kw_only=True)
class Rows(Observations):
    """The rows of one group of a fit.

    The fitted rows are sorted, so that the table's order has no effect. Their weights follow from
    the standard errors that the fit names. What the entry does not request is None.
    """

    where: Where  # the split column's value; empty where the fit is not split
    held_columns: dict[str, Array]  # of the held-out rows
    held_response: Array
    held_rows: Index  # their numbers in the table, from 0
    left_out: dict[str, int]  # reason -> number of rows, over the whole table
    notes: tuple[str, ...] = ()  # unit conversions and derivations: "D = C / (6 N_active)"
    warnings: tuple[str, ...] = ()
    blocks_by: str = ROWS  # the column whose values are blocks
    blocks: Index | None = None  # (n,) block of each fitted row, counted from 0
    held_blocks: NDArray[np.object_] | None = None  # of the held-out rows, the block's name
    sparsity: float | None = None  # (E - k) / E, if the table has one for all fitted rows


def read_rows(path: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Returns the table at ``path`` and the units that it declares.

    If ``path`` is the report of a fit, its estimates are the table.
    """
    return (estimates_table(read_fit(path)), {}) if is_report(path) else read_any(path)


def split_rows(
    law: FittableLaw, table: pd.DataFrame, spec: Fit, units: Mapping[str, str] = {}
) -> list[Rows]:
    """Returns the rows of each group of the fit, checked.

    Rows whose status is not ``completed`` are left out, if the table is of this package; ``units``
    are those that the table itself declares, by column. A UserError refuses a column that is
    missing, holds no numbers or another quantity, a value outside a variable's domain (with its
    row), and a split or a hold-out that leaves nothing.
    """
    reader = _Reader(law, table, spec, units, read_variables(law, table, spec, units))
    left_out: dict[str, int] = {}
    used = reader.used(left_out)
    held = reader.select(spec.holdout, whole=False)
    if spec.holdout and used.any() and not (used & held).any():
        raise UserError(f"holdout {spec.holdout!r} selects none of the {used.sum()} rows")
    groups = reader.split(used, left_out)
    for _, group in groups if "run_id" in table.columns else ():
        ids = pd.Series(table["run_id"].to_numpy(), np.arange(1, len(table) + 1))[group].dropna()
        refuse_twice(ids, lambda run: f"both have run_id {run}; a table may hold one row a run")
    if not groups or not used.any():
        only = "; of a column status only completed counts" if "status" in table.columns else ""
        raise UserError(f"no row is left to fit; left out: {_listed(left_out)}{only}")
    needed = law.n_free
    enough = [(where, group) for where, group in groups if (group & ~held).sum() >= needed]
    if enough:  # one group that lost its runs, such as a budget, does not prevent the other fits
        for where, group in groups:
            if (group & ~held).sum() < needed:
                _count(left_out, f"fewer than {needed} rows at {place(where)}", group)
        groups = enough
    check_values(reader.given, table, used, spec, units)
    return [reader.rows(where, group & ~held, group & held, left_out) for where, group in groups]


def selected_rows(
    table: pd.DataFrame, law: FittableLaw, spec: Fit, where: Where
) -> tuple[Mask, Mask]:
    """Returns masks over the table's rows: those fitted and held out in the group ``where``."""
    reader = _Reader(law, table, spec, {}, read_variables(law, table, spec))
    used = reader.used({})
    for column, value in where.items():
        require_column(table, column, column)
        used = used & has_value(columns_of(table[[column]])[column], value)
    held = reader.select(spec.holdout, whole=False)
    return used & ~held, used & held


def used_columns(law: FittableLaw, table: pd.DataFrame, spec: Fit) -> list[str]:
    """Returns the table's columns that decide the fit, sorted."""
    columns = set(column_sources(law, table, spec).columns.values())
    columns |= {"status", spec.split_by, spec.weights, *spec.best_per}
    columns |= {spec.resample_by or spec.mapping.get(name, name) for name in SHARED}
    columns |= {"sweep"} if spec.sweep else set()
    columns |= {name for text in (spec.rows, spec.holdout) for name in names_in(text)}
    return sorted(columns & set(table.columns))


def digest(table: pd.DataFrame, columns: Iterable[str]) -> str:
    """Returns SHA-256 over the content of ``columns``, whatever the order of the rows."""
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


@dataclass(frozen=True)
class _Reader:
    """A table as one fit's entry reads it; every mask is over the table's rows, (n,)."""

    law: FittableLaw
    table: pd.DataFrame
    spec: Fit
    units: Mapping[str, str]
    given: Variables

    def used(self, left_out: dict[str, int]) -> Mask:
        """Returns the completed rows of the sweep that are selected, and counts those left out."""
        used = completed(self.table)
        if not used.all():
            for value, count in self.table["status"][~used].astype(str).value_counts().items():
                left_out[f"status is {value}"] = int(count)
        if self.spec.sweep:
            swept = in_sweep(self.table, self.spec.sweep)
            _count(left_out, f"not of the sweep {self.spec.sweep}", used & ~swept)
            used = used & swept
        selected = self.select(self.spec.rows)
        _count(left_out, f"not in rows: {self.spec.rows}", used & ~selected)
        used = used & selected
        if self.spec.drop_missing:
            empty = np.isnan(np.stack([*self.given.values.values()])).any(axis=0)
            _count(left_out, "an empty cell", used & empty)
            used = used & ~empty
        loss = self.given.sources.columns[self.law.response.name]
        best = best_trials(self.table, self.spec.best_per, used, loss)
        _count(left_out, f"not the best trial per {', '.join(self.spec.best_per)}", used & ~best)
        return best

    def select(self, expression: str, whole: bool = True) -> Mask:
        """Returns the rows of an expression; an empty one selects all if ``whole``, else none."""
        if not expression.strip():
            return np.full(len(self.table), whole)
        return np.array(np.broadcast_to(select(self.named(), expression), len(self.table)), bool)

    def named(self) -> dict[str, Array]:
        """Returns what a row expression may name: the variables and the columns.

        A name of a variable that is mapped to another column means the column of that name.
        """
        values, columns = self.given.values, self.given.sources.columns
        own = {name: x for name, x in values.items() if columns.get(name, name) == name}
        return values | columns_of(self.table) | own

    def split(self, used: Mask, left_out: dict[str, int]) -> list[tuple[Where, Mask]]:
        """Returns the values of the split column, in rising order, and the rows of each."""
        column = self.spec.split_by
        if not column:
            return [({}, used)]
        require_column(self.table, column, "split_by")
        cells = columns_of(self.table[[column]])[column]
        has_one = self.table[column].notna().to_numpy(dtype=bool)
        _count(left_out, f"no value of {column}", used & ~has_one)
        values = sorted(set(cells[used & has_one].tolist()))
        return [({column: value}, used & (cells == value)) for value in values]

    def weights(self, fitted: Mask, warnings: list[str]) -> Array | None:
        """Returns (s / se)^2 of the fitted rows, of mean 1, by errors on the objective's scale.

        A doubt about ``se`` is a warning.
        """
        column, response = self.spec.weights, self.law.response
        if not column:
            return None
        se, value = numbers(self.table, column, "weights"), self.given.values[response.name]
        refuse_unit(response, column, self.units.get(column), self.spec.units.get(response.name))
        wrong = fitted & ~(np.isfinite(se) & (se > 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise UserError(
                f"{row_name(self.table, row)}: column {column} is {se[row]:.6g}, as the standard "
                f"error of {response.name}; it must be a finite number above 0 in every fitted row"
            )
        with np.errstate(all="ignore"):  # rows that are not fitted may hold anything
            relative = se / value
        ratio = float(np.median(np.abs(relative[fitted])))
        ratio *= self.given.factors.get(response.name, 1.0)
        if not SMALLEST_ERROR <= ratio <= 1:
            warnings.append(
                f"the median error in column {column} is {ratio:.2g} of the value: is it one of "
                "its logarithm or another unit?"
            )
        se = relative if self.law.log_response else se
        weights = (se[fitted].min() / se[fitted]) ** 2
        # The sum is of sorted numbers, so that it is the same in any order of rows.
        return np.asarray(weights / np.sort(weights).mean())

    def block_names(
        self, fitted: Mask, notes: list[str], warnings: list[str]
    ) -> tuple[str, NDArray[np.object_] | None]:
        """Returns the column whose values are blocks, and its value in each row, text or number.

        By default it is the first that groups the fitted rows, two or more a value.
        """
        by = self.spec.resample_by
        for name in () if by else (self.spec.mapping.get(name, name) for name in SHARED):
            if name not in self.table.columns:
                continue
            values = self.table[name][fitted]
            count = values.nunique()
            if values.isna().any() or not 1 < count <= len(values) / 2:
                continue
            if count >= FEWEST_BLOCKS:
                by = name
                notes.append(f"blocks: the {count} values of {by}, whose rows may err together")
            else:
                warnings.append(
                    f"the rows share {count} values of {name}, too few to draw as blocks: an error "
                    "that rows of one value have in common is not in the intervals"
                )
            break
        if by in ("", ROWS):
            return ROWS, None
        require_column(self.table, by, "resample_by")
        missing = fitted & self.table[by].isna().to_numpy(dtype=bool)
        if missing.any():
            raise UserError(
                f"{row_name(self.table, int(np.argmax(missing)))}: column {by} is empty; "
                "resample_by needs a value in every fitted row"
            )
        return by, columns_of(self.table[[by]])[by].astype(object)

    def rows(self, where: Where, fitted: Mask, held: Mask, left_out: dict[str, int]) -> Rows:
        """Returns the rows of the group ``where``, the fitted ones sorted."""
        n, needed = int(fitted.sum()), self.law.n_free
        at = f" at {place(where)}" if where else ""
        if n < needed:
            raise UserError(
                f"{n} rows{at} are left to fit the {needed} parameters of {self.law.ref}; "
                f"at least {needed} are needed. Left out: {_listed(left_out)}"
                + (f"; held out: {int(held.sum())}" if self.spec.holdout else "")
            )
        values = self.given.values
        names = [v.name for v in self.law.variables if v.name in values]
        response = values[self.law.response.name]
        notes, warnings = list(self.given.notes), list[str]()
        weights = self.weights(fitted, warnings)
        warnings += _doubts(self.table[fitted | held])
        by, names_of_blocks = self.block_names(fitted, notes, warnings)
        blocks = None
        if names_of_blocks is not None:
            blocks = np.unique(names_of_blocks[fitted], return_inverse=True)[1]
            if not blocks.any():
                raise UserError(
                    f"resample_by {by}: all {n} rows{at} are one block; at least 2 are needed to "
                    "draw from"
                )
        last = [x for x in (blocks, weights) if x is not None]
        # The response is the first key: the bootstrap draws rows by their position, and laws that
        # are compared have only the response in common.
        order = np.lexsort([*last, *(values[name][fitted] for name in names), response[fitted]])
        return Rows(
            columns={name: values[name][fitted][order] for name in names},
            response=response[fitted][order],
            weights=None if weights is None else weights[order],
            where=where,
            held_columns={name: values[name][held] for name in names},
            held_response=response[held],
            held_rows=np.flatnonzero(held),
            left_out=left_out,
            notes=tuple(notes),
            warnings=tuple(warnings),
            blocks_by=by,
            blocks=None if blocks is None else blocks[order],
            held_blocks=None if names_of_blocks is None else names_of_blocks[held],
            sparsity=_sparsity(self.table[fitted], self.spec.mapping),
        )


def _doubts(table: pd.DataFrame) -> Iterator[str]:
    """Yields a warning if rows stand twice, or are of runs that did not end by a tracker's word."""
    if copies := int(table.astype(str).duplicated().sum()):  # as texts: a cell may hold a list
        yield (
            f"{counted(copies, 'row stands', 'rows stand')} twice: the same as another row in "
            "every column; such copies make intervals too narrow"
        )
    for name in table.columns:
        if str(name).lower() in ("status", "state"):
            status = table[name].astype(str)
            found = status[status.str.lower().isin(UNFINISHED)].value_counts()
            if len(found):
                counts = ", ".join(f"{count} {value}" for value, count in found.items())
                rows = " and ".join(f"{name} != {value}" for value in found.index)
                yield f"{name} of rows that take part: {counts}; rows {rows!r} leave them out"


def _sparsity(table: pd.DataFrame, mapping: Mapping[str, str]) -> float | None:
    """Returns the sparsity that all rows share, by a column S or by columns E and k."""
    read = {name: mapping.get(name, name) for name in ("S", "E", "k")}
    known = {name: as_numbers(table[column]) for name, column in read.items() if column in table}
    if "S" not in known and not {"E", "k"} <= known.keys():
        return None
    S = known["S"] if "S" in known else 1 - known["k"] / known["E"]
    return float(S[0]) if 0 <= S[0] < 1 and np.allclose(S, S[0], rtol=0, atol=1e-9) else None


def _count(left_out: dict[str, int], reason: str, mask: Mask) -> None:
    if mask.any():
        left_out[reason] = int(mask.sum())


def _listed(left_out: dict[str, int]) -> str:
    return ", ".join(f"{count} ({reason})" for reason, count in left_out.items()) or "none"
