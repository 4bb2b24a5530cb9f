"""Pydantic's refusals in a user's words: the key as written, its value, and what is allowed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from moelaws.spec.errors import nearest, quoted
from moelaws.spec.from_toml import table_beside
from moelaws.spec.words import joined

KEY = "[key]"  # how pydantic ends the path of a mistake in a key itself

ALLOWED = table_beside(__file__)  # pydantic's type of a mistake -> what would have been right


def must_be(words: str) -> PydanticCustomError:
    """Returns the error of a validator whose values must be ``words``, such as "a number"."""
    return PydanticCustomError("must_be", "{words}", {"words": words})


def mistakes(error: ValidationError, data: object) -> list[str]:
    """Returns a sentence for each mistake in ``data`` for which a schema refused it."""
    places: dict[tuple[str, ...], list[Any]] = {}
    for each in error.errors(include_url=False):
        places.setdefault(_place(each, data), []).append(each)
    # pydantic reports a mistake once for each member of a union. The user meant the member that
    # accepted the value itself and refused something within it.
    outer = {place[:n] for place in places for n in range(len(place))}
    return [
        _sentence("".join(place).lstrip(". "), errors)
        for place, errors in places.items()
        if place not in outer
    ]


def _sentence(key: str, errors: Sequence[Any]) -> str:
    error = next((e for e in errors if e["type"] == "value_error"), errors[0])
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind.startswith("union_tag"):
        tag = context["discriminator"].strip("'")
        key, value = ".".join(filter(None, [key, tag])), value.get(tag)
    if kind in ("missing", "union_tag_not_found"):
        return f"{key} is missing"
    if kind == "value_error":
        # The message itself names what is wrong in a mapping or list; a text is shown.
        shown = "" if isinstance(value, Mapping | list | tuple) else f" is {_shown(value)};"
        return f"{key}{shown or ':' * bool(key)} {context['error']}".strip()
    text = joined(dict.fromkeys(map(_allowed, errors)), "or")
    if isinstance(value, bool) and "true or false" not in text:
        text += " (YAML reads yes, no, on and off as true and false: quote such a text)"
    if error["loc"][-1:] == (KEY,):
        return f"{key}: the key {_shown(value)} must be {text}"
    return f"{key or 'all of it'} is {_shown(value)}; it must be {text}"


def _allowed(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if words := context.get("expected") or context.get("expected_tags"):  # a literal or a union
        known = re.findall(r"'([^']*)'", words)
        near = nearest(context.get("tag", error["input"]), known)
        return joined([word or "left out" for word in known], "or") + near
    allowed: str = ALLOWED.get(kind) or ALLOWED.get(kind.partition("_")[0], "another value")
    return allowed.format(**context)


def _place(error: Any, data: Any) -> tuple[str, ...]:
    """Returns the keys of an error's path, as messages write them one behind the other.

    An entry of a list has its name, or a number from 1. pydantic's names of the members of unions
    are left out.
    """
    place = []
    *above, last = error["loc"] or [KEY]
    for step in above:
        if _has(data, step):
            data = data[step]
            place.append(_label(step, data))
    # The name of a union's member may also be a key of the value that was refused.
    if error["type"] == "missing" or (_has(data, last) and data is not error["input"]):
        place.append(_label(last, data[last] if _has(data, last) else None))
    return (*place, "") if last == KEY else tuple(place)


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, Mapping):
        return step in data
    return isinstance(data, list | tuple) and isinstance(step, int) and step < len(data)


def _label(key: str | int, value: Any) -> str:
    if isinstance(key, str):
        return f".{key or repr(key)}"
    name = value.get("name") if isinstance(value, Mapping) else None
    return f".{name}" if isinstance(name, str) and name else f" #{key + 1}"


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "empty (null)" if value is None else str(value).lower()
    return quoted(value, 80)
