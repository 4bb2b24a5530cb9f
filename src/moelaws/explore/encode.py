"""How numbers and texts are embedded in a page: Base64, whose letters mean nothing in HTML."""

import base64
import gzip
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from moelaws.files.atomic import finite


def floats(values: Any, bits: int = 32) -> str:
    """Returns numbers as Base64 of little-endian floats of 32 or 64 ``bits``, row-major."""
    return _base64(np.ascontiguousarray(values, dtype=f"<f{bits // 8}").tobytes())


def integers(values: Any) -> str:
    """Returns whole numbers as Base64 of little-endian 32-bit integers."""
    return _base64(np.ascontiguousarray(values, dtype="<i4").tobytes())


def packed(text: str) -> str:
    """Returns ``text`` as Base64 of its gzip; the same text gives the same letters."""
    return _base64(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def to_json(data: Any) -> str:
    """Returns JSON without spaces: numbers that are not finite are null, dates and so on texts."""
    return json.dumps(finite(data), allow_nan=False, separators=(",", ":"), default=str)


def shortened(values: Iterable[float]) -> list[float]:
    """Returns numbers with seven significant digits, more than the page shows."""
    return [float(f"{value:.7g}") for value in values]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
