"""The package's only reader of JSON, as users write it."""

import json
import re
from collections import Counter
from typing import Any

from moelaws.spec.errors import UserError


def parse_json(text: str | bytes, where: object, missing: bool = False) -> Any:
    """Returns the data in a JSON text; messages name it as ``where``.

    It refuses NaN and Infinity, which JSON does not have, unless values may be ``missing``.
    """
    try:
        # Some editors and shells write a byte-order mark before UTF-8.
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        data = (_WITH_NAN if missing else _DECODER).decode(plain)
        if _SUSPECT.search(plain):
            _refuse_unusable(data)
        return data
    except RecursionError:
        raise UserError(f"{where} is not valid JSON: it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not valid JSON: byte {error.start} is not UTF-8") from None
    except ValueError as error:  # ``int`` raises it too, with advice on how to lift its limit
        problem = str(error).partition("; use sys.")[0]
        raise UserError(f"{where} is not valid JSON: {problem}") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {twice!r} stands twice")
    return data


# What may be no number to any program, or no text that can be written: most files have neither.
_SUSPECT = re.compile(r"[0-9]{300}|\\u[dD][89a-fA-F]")


def _refuse_unusable(data: Any) -> None:
    """Raises ValueError for half a surrogate pair, and for a whole number beyond all floats."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it has half a surrogate pair, which is no character") from None
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif type(value) is int and abs(value) >= 10**308:
            raise ValueError("a whole number is 1e308 or more, which is too large")


# Made once, because a sweep has tens of thousands of records to read.
_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=_once)
