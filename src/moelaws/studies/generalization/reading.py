"""How claims and paper tables read a derived table: one row of it, and an interval in words."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd


def one_row(frame: pd.DataFrame, **values: str) -> dict[Any, Any]:
    """Returns the cells of the only row whose columns have these ``values``."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    (row,) = frame.to_dict("records")
    return row


def interval_text(low: float, high: float, unknown: str) -> str:
    """Returns the interval in three digits, or ``unknown`` where an end is not finite."""
    return f"{low:.3g} to {high:.3g}" if math.isfinite(low + high) else unknown
