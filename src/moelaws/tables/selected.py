"""What one SELECT makes of foreign tables: a study's table, or what each run costs."""

import re
from collections import Counter
from collections.abc import Mapping

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from moelaws.spec.errors import UserError, listed
from moelaws.tables.foreign import as_numbers, columns
from moelaws.tables.locked import answer, reason

_MOST = 40  # missing columns that one refusal names; each takes a process to find
_LACKS = r'(?:Referenced column|a column named) "(.+?)"'  # how DuckDB names a missing column


def select(sql: str, sources: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Returns the rows, of Python's values, that the SELECT makes of tables by their names.

    To the SQL a column is of doubles if all its cells are numbers, and else of texts; empty cells
    are NULL. A further column ``_row`` numbers the rows from 1. The SQL reads nothing else. All
    columns that it names and no table has are refused together.
    """
    tables = {name: _typed(frame) for name, frame in sources.items()}
    try:
        found = answer(sql, tables)
    except (duckdb.Error, RecursionError, ValueError) as error:
        if lacking := _lacking(error, sql, tables):
            known = dict.fromkeys(name for table in tables.values() for name in table.column_names)
            names = ", ".join(map(repr, lacking))
            raise UserError(f"no column {names}; there are {listed(known)}") from None
        raise UserError(f"the SQL has no answer: {reason(error)}") from None
    return pd.DataFrame(found.rows, columns=found.columns, dtype=object)


def evaluate(expression: str, frame: pd.DataFrame) -> NDArray[np.float64]:
    """Returns the number that an SQL expression gives in each row (rows,); NaN where it is none."""
    sql = f"SELECT ({expression}\n) AS value FROM source ORDER BY _row"
    values = as_numbers(select(sql, {"source": frame})["value"])
    if len(values) != len(frame):
        raise UserError(f"{expression!r} gives {len(values)} values in {len(frame)} rows")
    return values


def _lacking(error: Exception, sql: str, tables: Mapping[str, pa.Table]) -> list[str]:
    """Returns the columns that the SQL names and no table has, of which DuckDB names one a time."""
    lacking = list[str]()
    while (
        len(lacking) < _MOST
        and (lacks := re.search(_LACKS, str(error)))
        and lacks[1] not in lacking
    ):
        lacking.append(lacks[1])
        tables = {
            name: table.append_column(lacks[1], pa.nulls(len(table), pa.float64()))
            for name, table in tables.items()
        }
        try:
            answer(sql, tables)
            break
        except (duckdb.Error, UserError, ValueError) as other:
            error = other
    return lacking


def _typed(frame: pd.DataFrame) -> pa.Table:
    cells = {**columns(frame), "_row": np.arange(1, len(frame) + 1)}
    # SQL takes N and n for one name: each such column gets a number, so that none is mistaken.
    times = Counter(name.casefold() for name in cells)
    names = [
        f"{name}_{i}" if times[name.casefold()] > 1 else name for i, name in enumerate(cells, 1)
    ]
    return pa.table([pa.array(values, from_pandas=True) for values in cells.values()], names=names)
