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
    # A sweep's records are read by the ten thousand: one decoder serves all that have no options.
    decoder = json.JSONDecoder(**{"parse_constant": _refuse, **options}) if options else _DECODER
    try:
        # Some editors and shells put a mark before UTF-8.
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        data = decoder.decode(plain)
    except RecursionError:
        raise UserError(f"{where}: {TOO_DEEP}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not valid JSON: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not valid JSON: {error}") from None
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except ValueError:  # of ``int``
        raise UserError(f"{where}: a whole number in it has thousands of digits") from None
    if plain.count("{") + plain.count("[") <= DEEPEST:
        return data  # as of most files: fewer levels than brackets
    level = [data]
    for _ in range(DEEPEST + 1):
        inner = [list(x.values()) if isinstance(x, dict) else x for x in level if _holds(x)]
        if not inner:
            return data
        level = [x for values in inner for x in values]
    raise UserError(f"{where}: {TOO_DEEP}")


def _refuse(name: str) -> None:
    raise UserError(f"not JSON: {name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _holds(data: object) -> bool:
    return isinstance(data, dict | list)
