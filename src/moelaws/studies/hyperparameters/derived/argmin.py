"""The best run of each budget: laws of the best allocation are fitted to these."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from moelaws.spec.errors import UserError


def argmin(frame: pd.DataFrame, groups: Sequence[str] = ("C",), loss: str = "L") -> pd.DataFrame:
    """Returns the row of least ``loss`` for each value of ``groups``, sorted by these.

    Rows are whole and keep their index in ``frame``; of equals the first is taken. Rows without a
    loss, such as diverged runs, are passed over. Source: leverage, App E.2, Eq 6-9.

    Raises:
        UserError: for a missing column, no rows, a group without a value or without any loss.
    """
    check_groups(frame, groups, loss)
    return frame.loc[frame.groupby(list(groups))[loss].idxmin()]


def check_groups(
    frame: pd.DataFrame, groups: Sequence[str], loss: str, others: Sequence[str] = ()
) -> None:
    """Refuses a table in which some group has no least loss.

    Raises:
        UserError: for a missing column, no rows, a group without a value or without any loss.
    """
    missing = [name for name in (*groups, loss, *others) if name not in frame.columns]
    if missing:
        known = ", ".join(map(str, frame.columns))
        raise UserError(f"the table has no column {', '.join(missing)}; it has {known}")
    if not groups:
        raise UserError("no column to group by; give at least one, such as C")
    if not len(frame):
        raise UserError("the table has no rows")
    if not frame.index.is_unique:
        raise UserError("the table's index repeats; reset it")
    for name in groups:
        if frame[name].isna().any():
            n = int(frame[name].isna().sum())
            raise UserError(f"column {name} is empty in {n} of {len(frame)} rows; leave them out")
    best = frame.groupby(list(groups))[loss].min()
    empty = best[best.isna()]
    if len(empty):
        key = empty.index[0] if len(groups) > 1 else (empty.index[0],)
        where = ", ".join(
            f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in zip(groups, key, strict=True)
        )
        raise UserError(f"no run with a value of {loss} at {where}; leave these rows out")
