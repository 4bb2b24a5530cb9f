"""Writes NumPy columns to Parquet with units, without pandas, which takes half a second to load."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

About = Mapping[str, Sequence[str]]  # column -> its unit and meaning, and in rows its type
MadeOf = Mapping[str, Any] | None  # for the footer of a file


def write_columns(
    path: Path, about: About, columns: Mapping[str, NDArray[Any]], made_of: MadeOf = None
) -> None:
    """Writes ``columns`` of numbers or texts (rows,), or of lists of n numbers (rows, n)."""
    import pyarrow as pa

    from moelaws.files.parquet import write_parquet

    fields, arrays = [], []
    for name, values in columns.items():
        # pa.array() would be simpler, but it imports pandas.
        if values.dtype.kind == "U":
            array = _texts(values)
        else:
            flat = np.ascontiguousarray(values).reshape(-1)
            buffers = [None, pa.py_buffer(flat)]
            array = pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), buffers)
        if values.ndim == 2:
            array = pa.FixedSizeListArray.from_arrays(array, values.shape[1])
        unit, description, *_ = about[name]
        metadata = {"unit": unit, "description": description}
        fields.append(pa.field(name, array.type, nullable=False, metadata=metadata))
        arrays.append(array)
    write_parquet(path, pa.Table.from_arrays(arrays, schema=pa.schema(fields)), made_of)


def write_rows(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    made_of: MadeOf = None,
    *,
    about: About,
) -> None:
    """Writes ``rows`` like ``write_columns``; a column of no stated type has floats."""
    rows = list(rows)
    types: dict[str, Any] = {"string": str, "int": np.int64}
    columns = {
        name: np.array([row[name] for row in rows], types.get(words[-1], float))
        for name, words in about.items()
    }
    write_columns(path, about, columns, made_of)


def _texts(values: NDArray[np.str_]) -> Any:
    import pyarrow as pa

    encoded = [text.encode() for text in values.tolist()]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = map(pa.py_buffer, (ends, b"".join(encoded)))
    return pa.StringArray.from_buffers(len(encoded), *buffers)
