"""The package's only reader of JSON, as users write it."""

import json
import re
from collections import Counter
from typing import Any

from moelaws.spec.errors import UserError


def parse_json(text: str | bytes, where: object, missing: bool = False) -> Any:
    """Returns the data in a JSON text; messages name it as ``where``.

    It refuses NaN and Infinity, which JSON does not have, unless values may be ``missing``. It also
    refuses what no program could use: a whole number beyond all floats, and half a surrogate pair.
    """
    try:
        # Some editors and shells write a byte-order mark before UTF-8.
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        data = (_WITH_NAN if missing else _DECODER).decode(plain)
        if _MAY_BE_HALF.search(plain):
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (RecursionError, ValueError) as error:
        raise UserError(f"{where} is not valid JSON: {error}") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 308:
        raise ValueError("a whole number is 1e308 or more, which is too large")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {twice!r} stands twice")
    return data


_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # a surrogate is met as an escape alone
# Made once, because a sweep has tens of thousands of records to read.
_WITH_NAN = json.JSONDecoder(parse_int=_whole, object_pairs_hook=_once)
_DECODER = json.JSONDecoder(parse_int=_whole, object_pairs_hook=_once, parse_constant=_refuse)
