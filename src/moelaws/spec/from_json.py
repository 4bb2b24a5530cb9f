"""The package's only reader of JSON, as users write it."""

import json
from typing import Any

from moelaws.spec.errors import UserError


def parse_json(text: str | bytes, where: object, missing: bool = False) -> Any:
    """Returns the data in a JSON text; messages name it as ``where``.

    It refuses NaN and Infinity, which JSON does not have, unless values may be ``missing``.
    """
    try:
        # Some editors and shells write a byte-order mark before UTF-8.
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        return (_WITH_NAN if missing else _DECODER).decode(plain)
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
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} stands twice")
    return data


# Made once, because a sweep has tens of thousands of records to read.
_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=_once)
