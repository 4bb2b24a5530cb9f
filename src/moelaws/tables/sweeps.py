"""Selects the rows of a study's table that one of its sweeps has."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.spec.errors import UserError


def in_sweep(table: pd.DataFrame, sweep: str) -> NDArray[np.bool_]:
    """Returns a mask (n,) of the rows that the study's sweep ``sweep`` has."""
    if "sweep" not in table.columns:
        raise UserError(f"sweep is {sweep!r}, but the table has no column sweep")
    names = table["sweep"].astype(str).str.split(",")
    return np.array([sweep in of_row for of_row in names], dtype=bool)
