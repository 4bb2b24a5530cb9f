"""JSON as users write it: the one reader of it, with a limit of its depth."""

from __future__ import annotations

import json
from typing import Any

from moelaws.spec.errors import UserError

DEEPEST = 100  # levels of nested lists and mappings
TOO_DEEP = f"nested more than {DEEPEST} levels deep"


def parse_json(text: str | bytes, where: object, **options: Any) -> Any:
    """Returns the data in a JSON text; messages name it as ``where``.

    ``options`` are those of ``json.loads``. NaN and Infinity, which JSON does not have, are refused
    unless ``parse_constant`` says otherwise.

    Raises:
        UserError: for what is not JSON, too deep, or a whole number of thousands of digits.
    """

    try:
        if isinstance(text, str) or options:
            data = json.loads(text, **{"parse_constant": _refuse, **options})
        else:  # a sweep's records are read by the ten thousand: one decoder serves them all
            data = _DECODER.decode(text.decode())
    except _ConstantError as error:
        raise UserError(f"{where}: not JSON: {error} is no number of JSON") from None
    except RecursionError:
        raise UserError(f"{where}: {TOO_DEEP}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not valid JSON: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not valid JSON: {error}") from None
    except ValueError:  # of ``int``
        raise UserError(f"{where}: a whole number in it has thousands of digits") from None
    brackets = ("{", "[") if isinstance(text, str) else (b"{", b"[")
    if sum(map(text.count, brackets)) <= DEEPEST:  # type: ignore[arg-type]
        return data  # as of most files: fewer levels than brackets
    level = [data]
    for _ in range(DEEPEST + 1):
        inner = [list(x.values()) if isinstance(x, dict) else x for x in level if _holds(x)]
        if not inner:
            return data
        level = [x for values in inner for x in values]
    raise UserError(f"{where}: {TOO_DEEP}")


class _ConstantError(Exception):
    """Holds the name of a number that JSON does not have."""


def _refuse(name: str) -> None:
    raise _ConstantError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _holds(data: object) -> bool:
    return isinstance(data, dict | list)
