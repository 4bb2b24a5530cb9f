"""The best and the near-optimal runs of each budget, to which laws of the best are fitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.spec.errors import UserError

TOLERANCE = 0.0025  # leverage, App E.1; App M has .005
OUTLIER = 3.5  # modified z-score, Iglewicz and Hoaglin 1993


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


def near_optimal(
    frame: pd.DataFrame,
    settings: Sequence[str],
    groups: Sequence[str] = ("C",),
    loss: str = "L",
    *,
    tolerance: float = TOLERANCE,
    outlier: float = OUTLIER,
) -> pd.Series:
    """Returns a mask of the rows that are near the best of their group and no outliers.

    A row is near where its ``loss`` is at most 1 + ``tolerance`` times the group's least; a row
    without a loss never is. The paper removes outliers and does not say how. Here a near row is one
    where the logarithm of any of ``settings`` (positive columns, such as lr) has a modified z-score
    above ``outlier`` among the near rows of its group (``modified_z``). ``outlier=inf`` removes
    none. Source: leverage, App E.1.

    Raises:
        UserError: for a missing column, no rows, a group without a value or without any loss, a
            loss or a setting that is not above 0, or a negative ``tolerance`` or ``outlier``.
    """
    check_groups(frame, groups, loss, settings)
    for name, value in (("tolerance", tolerance), ("outlier", outlier)):
        if not value >= 0:
            raise UserError(f"{name} is {value}; it must be at least 0")
    losses = frame[loss].astype(float)
    if (losses <= 0).any():
        raise UserError(f"column {loss} holds {losses.min():g}; a loss must be above 0")
    by = [frame[name] for name in groups]
    near = losses <= (1 + tolerance) * losses.groupby(by).transform("min")
    mask = near.to_numpy(bool)
    far = np.zeros(len(frame), bool)
    rows = np.flatnonzero(mask)
    keys = [column.iloc[rows] for column in by]
    for name in settings:
        values = frame[name].iloc[rows].astype(float)
        if not (values > 0).all():
            raise UserError(f"column {name} holds {values.min():g}; it must be above 0")
        logs = pd.Series(np.log(values.to_numpy(float)), index=values.index)
        scores = logs.groupby(keys).transform(modified_z)
        far[rows] |= np.abs(scores.to_numpy(float)) > outlier
    return pd.Series(mask & ~far, index=frame.index, name="near_optimal")


def modified_z(x: pd.Series) -> pd.Series:
    """Returns the modified z-scores of ``x`` (n,), which the outliers themselves hardly move.

    A score is the distance from the median over the median absolute deviation / .6745 or, where
    more than half of the values are equal, over 1.2533 times the mean absolute deviation. Scores
    are 0 where all values are equal. Source: Iglewicz and Hoaglin 1993.
    """
    from_median = x - x.median()
    mad, mean = from_median.abs().median(), from_median.abs().mean()
    # Differences of equal logarithms are exactly 0; a spread of rounding errors is none.
    scale = mad / 0.6745 if mad > 1e-12 else 1.2533 * mean
    return from_median / scale if scale > 1e-12 else from_median * 0.0
