"""Checks of a table of imported runs; messages name rows by their number in the source."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pandas as pd

from moelaws.laws.base import NOT_NEGATIVE, POSITIVE
from moelaws.laws.vocabulary import MAX_LOSS, SOME_ROW_ABOVE, USUAL_UNITS, VOCABULARY
from moelaws.spec.errors import UserError
from moelaws.spec.importing import Mapping, Published
from moelaws.tables.column import Column
from moelaws.tables.foreign import refuse_twice
from moelaws.tables.schema import IMPORTED_COLUMNS

STATUSES = ("completed", "diverged", "out_of_memory")
LOSSES = ("L", "L_se", "L_seed_sd", "bpb", "L_train")
_ABOVE_0 = ("parameters", "tokens", "FLOP", "heads", "steps")
_ABOVE_0_NAMES = ("L", "bpb", "L_train", "lr", "n_layers", "d_model", "d_expert")
ONE_IS_KEPT = "`duplicates: first` in the mapping keeps the first"
# In each row the first of two such columns is at most the second.
_ORDERED = (
    ("k", "E"),
    ("N_active", "N_total"),
    ("N_active_nonemb", "N_total_nonemb"),
    ("N_active_nonemb", "N_active"),
    ("N_total_nonemb", "N_total"),
)


def refuse_first(wrong: pd.Series, text: Callable[[Any], str]) -> None:
    """Raises a ``UserError`` with the ``text`` of the first row that is ``wrong``, if any is."""
    wrong = wrong.fillna(False).astype(bool)
    if wrong.any():
        row = wrong.index[wrong][0]
        raise UserError(f"row {row}: {text(row)}")


def as_lines(source: pd.DataFrame) -> pd.Series:
    """Returns each row as a text, by which rows are compared."""
    return pd.Series(map(repr, source.itertuples(index=False, name=None)), source.index)


def check(
    frame: pd.DataFrame, source: pd.DataFrame, with_unit: Collection[str], mapping: Mapping
) -> None:
    """Refuses a study's table, made of the rows of ``source``, that is wrong somewhere.

    The mapping or the source states the unit of the columns ``with_unit``; for other columns small
    counts are a sign of another unit.
    """
    refuse_twice(
        frame["run_id"],
        lambda run: (
            f"both have run_id {run}; a table holds one row a run. If these are two runs, map "
            "run_id to a column that tells them apart (in W&B: ID); if they are rows of one run, "
            f"add `last: COLUMN`; if they are alike in that column too, {ONE_IS_KEPT}"
        ),
    )
    if mapping.duplicates != "all":
        refuse_twice(as_lines(source), lambda line: f"are the same in every column; {ONE_IS_KEPT}")
    status = frame["status"]
    refuse_first(
        ~status.isin(STATUSES),
        lambda row: (
            f"status is {status[row]!r}; it must be one of {', '.join(STATUSES)}. A mapping says "
            "it under columns.status, by value or by values."
        ),
    )
    for column in IMPORTED_COLUMNS:
        if column.type in ("int", "float"):
            _check_range(frame, column, column.name in with_unit)
    for less, more in _ORDERED:
        _check_order(frame[less], frame[more])
    completed = status == "completed"
    refuse_first(
        completed & frame[mapping.loss].isna(),
        lambda row: (
            f"the loss {mapping.loss} of run {frame['run_id'][row]} is missing, and its status is "
            "completed. Leave such rows out by rows or only, or add `without_loss: diverged` to "
            "the mapping."
        ),
    )
    if (typical := frame["L"][completed].median()) > MAX_LOSS:
        raise UserError(
            f"the loss L is {typical:.6g} nats/token in the median row, more than any vocabulary "
            "gives; a perplexity p becomes a loss by the expression ln(p)"
        )


def check_published(frame: pd.DataFrame, said: Published, mapping_file: object) -> None:
    """Refuses a table whose number of runs or range of budgets is not what the register says."""
    low, high = frame["C"].min(), frame["C"].max()
    if len(frame) != said.runs or not np.allclose((low, high), said.C, rtol=1e-3, atol=0):
        raise UserError(
            f"the table has {len(frame)} runs with C from {low:.4g} to {high:.4g}, and "
            f"{mapping_file} says {said.runs} runs with C from {said.C[0]:.4g} to {said.C[1]:.4g}"
        )


def _check_order(less: pd.Series, more: pd.Series) -> None:
    refuse_first(
        less > more,
        lambda row: f"{less.name} is {less[row]} and above {more.name}, {more[row]}",
    )


def _check_range(frame: pd.DataFrame, column: Column, has_unit: bool) -> None:
    name, unit = column.name, column.unit
    domain = POSITIVE if unit in _ABOVE_0 or name in _ABOVE_0_NAMES else NOT_NEGATIVE
    if name in VOCABULARY:
        domain = VOCABULARY[name].domain
    values = pd.Series(frame[name].to_numpy(float, na_value=np.nan), frame.index)
    refuse_first(
        values.notna() & ~domain.holds(values.to_numpy()),
        lambda row: (
            f"{name} of run {frame['run_id'][row]} is {values[row]:.6g}; it must be {domain.text}"
        ),
    )
    is_count = name.startswith(("N_", "C", "D"))
    if is_count and not has_unit and values.max() < SOME_ROW_ABOVE.get(unit, 0):
        raise UserError(
            f"{name} is at most {values.max():.6g} {unit}. Say its unit in the mapping, such as "
            f"`unit: {USUAL_UNITS[unit]}`, or `unit: {unit}` if the numbers are right."
        )
