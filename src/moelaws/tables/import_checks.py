"""Checks of a table of imported runs; messages name rows by their number in the SQL's answer."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from moelaws.laws.base import NOT_NEGATIVE, POSITIVE
from moelaws.laws.vocabulary import MAX_LOSS, SOME_ROW_ABOVE, VOCABULARY
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.importing import Published
from moelaws.tables.column import Column
from moelaws.tables.foreign import refuse_twice
from moelaws.tables.schema import IMPORTED_COLUMNS

STATUSES = ("completed", "diverged", "out_of_memory")
LOSSES = ("L", "L_se", "L_seed_sd", "bpb", "L_train")
_TABLE = table_beside(__file__)


def refuse_first(wrong: pd.Series, text: Callable[[Any], str]) -> None:
    """Raises a ``UserError`` with the ``text`` of the first row that is ``wrong``, if any is."""
    wrong = wrong.fillna(False).astype(bool)
    if wrong.any():
        row = wrong.index[wrong][0]
        raise UserError(f"row {row}: {text(row)}")


def check(frame: pd.DataFrame, explained: Collection[str]) -> None:
    """Refuses a study's table of imported runs that is wrong somewhere.

    Small counts are a sign of another unit, but in columns that a note has ``explained``.
    """
    refuse_first(frame["run_id"].fillna("") == "", lambda row: "run_id is empty")
    refuse_twice(
        frame["run_id"],
        lambda run: (
            f"both have run_id {run}; a table holds one row a run. If these are two runs, select a "
            "run_id that tells them apart (in W&B: ID); if they are rows of one run, keep the last "
            "with QUALIFY row_number() OVER (PARTITION BY name ORDER BY step DESC) = 1"
        ),
    )
    status = frame["status"]
    refuse_first(
        ~status.isin(STATUSES),
        lambda row: (
            f"status of run {frame['run_id'][row]} is {status[row]!r}; it must be one of "
            f"{', '.join(STATUSES)}, as CASE state WHEN 'finished' THEN 'completed' END makes it"
        ),
    )
    for column in IMPORTED_COLUMNS:
        if column.type in ("int", "float"):
            _check_range(frame, column, column.name in explained)
    for less, more in _TABLE["ordered"]:
        _check_order(frame[less], frame[more])
    completed = status == "completed"
    loss = "bpb" if frame["L"].isna().all() and frame["bpb"].notna().any() else "L"
    refuse_first(
        completed & frame[loss].isna(),
        lambda row: (
            f"the loss {loss} of run {frame['run_id'][row]} is missing, and its status is "
            f"completed. Leave such rows out with WHERE isfinite({loss}), or let the status of "
            "such a run be 'diverged'."
        ),
    )
    if (typical := frame["L"][completed].median()) > MAX_LOSS:
        raise UserError(
            f"the loss L is {typical:.6g} nats/token in the median row, more than any vocabulary "
            "gives; a perplexity p becomes a loss by ln(p)"
        )


def check_copies(frame: pd.DataFrame, sources: Iterable[pd.DataFrame]) -> None:
    """Refuses runs that are alike in all but their names, where rows of a source are copies."""
    if any(_as_lines(source).duplicated().any() for source in sources):
        refuse_twice(
            _as_lines(frame.drop(columns="run_id")),
            lambda line: (
                "are the same in every column but run_id, and so are rows of the source; keep one "
                "with SELECT DISTINCT, or select a column that tells them apart"
            ),
        )


def _as_lines(table: pd.DataFrame) -> pd.Series:
    """Returns each row as a text, by which rows are compared."""
    return pd.Series(map(repr, table.itertuples(index=False, name=None)), table.index)


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
    domain = POSITIVE if {unit, name}.intersection(_TABLE["above_0"]) else NOT_NEGATIVE
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
            f"{name} is at most {values.max():.6g} {unit}. The SQL must convert other units, as "
            f"1e6 * x does millions; if the numbers are right, say so in the mapping's notes.{name}"
        )
