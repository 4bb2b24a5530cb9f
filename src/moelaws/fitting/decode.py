"""JSON data as dataclasses, each value of the type that its field declares."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_PLAIN = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def decode(kind: type[T], data: Any, key: str = "") -> T:
    """Returns ``data`` as the type ``kind``: a dataclass, list, dict, union with None or scalar.

    Fields with a default may be absent. A whole number stays one where any number may be, and null
    is NaN there, for JSON has no other word for what is not finite.

    Raises:
        ValueError: naming the ``key``, and what is wrong there.
    """
    return _decoded(kind, data, key)  # type: ignore[no-any-return]


def _decoded(kind: Any, data: Any, key: str) -> Any:
    if kind is Any:
        return data
    if get_origin(kind) is UnionType:
        inner, none = get_args(kind)
        assert none is NoneType
        return None if data is None else _decoded(inner, data, key)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, _holds(dict, data, key), key)
    if get_origin(kind) is dict:
        value_kind = get_args(kind)[1]
        items = _holds(dict, data, key).items()
        return {name: _decoded(value_kind, value, f"{key}.{name}") for name, value in items}
    if get_origin(kind) is list:
        (value_kind,) = get_args(kind)
        values = enumerate(_holds(list, data, key), 1)
        return [_decoded(value_kind, value, f"{key} #{number}") for number, value in values]
    if kind is float and data is None:
        return math.nan
    types = (int, float) if kind is float else kind
    if not isinstance(data, types) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{key} is not {_PLAIN[kind]}")
    return data


def _dataclass(kind: Any, data: dict[str, Any], key: str) -> Any:
    hints = _hints(kind)
    dot = f"{key}." if key else ""
    if unknown := sorted(set(data) - set(hints)):
        raise ValueError(f"{dot}{unknown[0]} is unknown")
    for field in dataclasses.fields(kind):
        optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if field.name not in data and not optional:
            raise ValueError(f"{dot}{field.name} is missing")
    values = {k: _decoded(hints[k], value, f"{dot}{k}") for k, value in data.items()}
    try:
        return kind(**values)
    except ValueError as error:  # of its own check
        raise ValueError(f"{key}: {error}") from None


def _holds(kind: type[T], data: Any, key: str) -> T:
    if not isinstance(data, kind):
        raise ValueError(f"{key or 'all of it'} is not a {'list' if kind is list else 'mapping'}")
    return data


_hints = cache(get_type_hints)
