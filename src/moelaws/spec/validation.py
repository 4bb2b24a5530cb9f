"""What pydantic refuses, told to a user: the key as it was written, its value, what is allowed.

pydantic speaks of its own types, reports one mistake once for each member of a union, and puts the
members' names between the keys. None of that reaches a user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from moelaws.spec.errors import nearest, or_nearest

MOST_SHOWN = 80  # characters of a value: a whole mapping says nothing more than its key does

# pydantic's word for a mistake -> what would have been right.
ALLOWED = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "string_unicode": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} or fewer",
    "must_be": "{words}",
}


def must_be(words: str) -> PydanticCustomError:
    """Returns the error of a validator whose values must be what ``words`` say, as "a number"."""
    return PydanticCustomError("must_be", "{words}", {"words": words})


@dataclass(frozen=True)
class _Mistake:
    """One of pydantic's errors at the place where the user made it.

    Attributes:
        error: pydantic's own.
        keys: the path to it, without what pydantic put between the keys.
        shown: the same path as messages write it, such as ``fits.loss.rows`` or ``zip #2``.
        members: after how many keys a member of a union was tried, and which, in order.
        beside: the fields that are allowed where it is.
    """

    error: Mapping[str, Any]
    keys: tuple[str | int, ...]
    shown: str
    members: tuple[tuple[int, str], ...]
    beside: tuple[str, ...]


def mistakes(error: ValidationError, schema: type[BaseModel], data: object) -> list[str]:
    """Returns a sentence for each mistake in ``data`` by which ``schema`` refused it."""
    every = [_locate(e, schema, data) for e in error.errors(include_url=False)]
    # Of a list whose entries were refused pydantic also says that it is too short.
    inner = {mistake.keys[:n] for mistake in every for n in range(len(mistake.keys))}
    every = [m for m in every if m.error["type"] != "too_short" or m.keys not in inner]
    return list(dict.fromkeys(_sentence(group) for group in _without_unions(every, 0)))


def _without_unions(every: Sequence[_Mistake], level: int) -> Iterator[list[_Mistake]]:
    """Yields the errors of each mistake: several where no member of a union took a value."""
    groups: dict[Any, list[_Mistake]] = {}
    for mistake in every:
        tried = mistake.members[level : level + 1]
        place = mistake.keys[: tried[0][0]] if tried else mistake.keys
        groups.setdefault((place, bool(tried), None if tried else len(groups)), []).append(mistake)
    for (place, in_union, _), group in groups.items():
        if not in_union:
            yield group
            continue
        # The member that the user meant is the one that took the value itself, if not all in it.
        deepest = max(group, key=lambda mistake: len(mistake.keys))
        if len(deepest.keys) > len(place):
            meant = deepest.members[level]
            yield from _without_unions([m for m in group if m.members[level] == meant], level + 1)
        else:
            yield group


def _sentence(group: Sequence[_Mistake]) -> str:
    mistake = group[0]
    error, key = mistake.error, mistake.shown
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key {key}{or_nearest(mistake.keys[-1], mistake.beside, 'allowed here')}"
    if kind == "missing":
        return f"{key} is missing"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        key = ".".join(filter(None, [key, context["discriminator"].strip("'")]))
        if kind == "union_tag_not_found":
            return f"{key} is missing"
        tags = re.findall(r"'([^']*)'", context["expected_tags"])
        return f"{key} is {_shown(context['tag'])}; it must be {_one_of(tags, context['tag'])}"
    value = error["input"]
    if kind == "value_error":
        told = str(context["error"])
        # A text that contradicts itself is shown; of a mapping the message names what does.
        shown = f"{key} is {_shown(value)}; " if not _nested(value) else f"{key}: " if key else ""
        return f"{shown}{told}"
    every = dict.fromkeys(_allowed(m) for m in group)
    if "a number" in every:
        every.pop("a whole number", None)
    allowed = _listed([*every])
    if isinstance(value, bool) and "true or false" not in allowed:
        allowed += " (YAML reads yes, no, on and off as true and false: quote such a text)"
    if error["loc"][-1:] == ("[key]",):
        return f"{key}: the key {_shown(value)} must be {allowed}"
    return f"{key or 'all of it'} is {_shown(value)}; it must be {allowed}"


def _allowed(mistake: _Mistake) -> str:
    error = mistake.error
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        return _one_of(re.findall(r"'([^']*)'", context["expected"]), error["input"])
    if kind in ("model_type", "model_attributes_type", "dataclass_type"):
        return f"a mapping with the keys {', '.join(mistake.beside)}"
    numbers = {k: f"{v:,}" if isinstance(v, int) else v for k, v in context.items()}
    return ALLOWED.get(kind, "another value").format(**numbers)


def _one_of(words: Sequence[str], value: object) -> str:
    return _listed([word or "left out" for word in words]) + nearest(value, words)


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _nested(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple | BaseModel)


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "empty (null)" if value is None else str(value).lower()
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        return "a number of thousands of digits"
    if len(text) <= MOST_SHOWN:
        return text
    if isinstance(value, Mapping | BaseModel):
        return "a mapping"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else f"{text[:60]}..."


def _locate(error: Any, schema: type[BaseModel], data: object) -> _Mistake:
    """Follows an error's path through the data and the schema, which tells keys from members."""
    keys: list[str | int] = []
    members: list[tuple[int, str]] = []
    shown = ""
    here = beside = _models(schema)
    absent_step = len(error["loc"]) - 1 if error["type"] == "missing" else -1
    for i, step in enumerate(error["loc"]):
        absent = i == absent_step
        # A member's name may be a key of the very value that was refused.
        refused = data is error["input"] and error["type"] != "missing"
        if not absent and (refused or not _has(data, step)):
            members.append((len(keys), str(step)))
            narrowed = [m for m in here if m.__name__ == step or _has_tag(m, step)]
            here = beside = narrowed or here
            continue
        beside = here
        fields = [field for m in here for field in _fields(m, step)]
        here = [model for field in fields for model in _models(field.annotation)] or here
        data = None if absent else _inner(data, step)
        keys.append(step)
        shown += _step(step, data, shown)
    if error["type"] in ("model_type", "model_attributes_type", "dataclass_type"):
        beside = here
    names = tuple(sorted({f.alias or name for m in beside for name, f in m.model_fields.items()}))
    return _Mistake(error, tuple(keys), shown, tuple(members), names)


def _step(step: str | int, data: object, before: str) -> str:
    """An entry of a list goes by its name, as a study's do, or by its number from 1 on."""
    if isinstance(step, int):
        name = data.get("name") if isinstance(data, Mapping) else None
        if not (isinstance(name, str) and name):
            return f" #{step + 1}"
        step = name
    return f".{step}" if before else str(step)


def _has(data: object, step: str | int) -> bool:
    if isinstance(data, Mapping):
        return step in data
    if isinstance(data, BaseModel):
        return hasattr(data, str(step))
    return isinstance(data, list | tuple) and isinstance(step, int) and step < len(data)


def _inner(data: Any, step: str | int) -> Any:
    return getattr(data, str(step)) if isinstance(data, BaseModel) else data[step]


def _fields(model: type[BaseModel], key: str | int) -> list[Any]:
    return [f for name, f in model.model_fields.items() if key in (name, f.alias)]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Returns the models in an annotation, however deep in unions, tuples and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _has_tag(model: type[BaseModel], tag: str | int) -> bool:
    return any(tag in get_args(field.annotation) for field in model.model_fields.values())
