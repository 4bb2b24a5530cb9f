"""Frozen, validated data: numbers that YAML left as strings, unknown keys, canonical JSON."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from moelaws.spec.errors import UserError


def _number(value: object) -> object:
    # YAML 1.1 reads 1e20 and 3e-3 as strings, and True is an int to Python.
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not a boolean")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("a number is wanted") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a finite number is wanted")
    return value


def _whole(value: object) -> object:
    value = _number(value)
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError("a whole number is wanted")
        return int(value)
    return value


Real = Annotated[float, BeforeValidator(_number)]
Positive = Annotated[float, BeforeValidator(_number), Field(gt=0)]
NonNegative = Annotated[float, BeforeValidator(_number), Field(ge=0)]
Fraction = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1)]
Whole = Annotated[int, BeforeValidator(_whole), Field(ge=0)]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1)]


class Frozen(BaseModel):
    """Immutable data without unknown keys; hashable where its fields are."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def canonical_json(self) -> str:
        """Returns JSON with sorted keys, without defaults: a new field changes no old text."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def fingerprint(self) -> str:
        """Returns the first 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]


T = TypeVar("T", bound=Frozen)


def parse(schema: type[T], data: object, where: str | Path) -> T:
    """Validates ``data`` against ``schema``.

    Raises:
        UserError: naming ``where``, the key, its value and what is allowed, a line a mistake.
    """
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        raise UserError("\n".join(_line(schema, where, e) for e in error.errors())) from None


def _line(schema: type[Frozen], where: str | Path, error: Any) -> str:
    keys, allowed = _walk(schema, error["loc"])
    key = ".".join(keys) or "(top level)"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        listed = ", ".join(allowed)
        return f"{where}: unknown key {key}" + (f"; allowed here: {listed}" if listed else "")
    if error["type"] == "missing":
        return f"{where}: {key} is missing"
    if error["type"] == "union_tag_not_found":
        return f"{where}: {key}.{error['ctx']['discriminator'].strip(chr(39))} is missing"
    shown = repr(error["input"])
    if len(shown) > 80:  # a whole mapping says nothing more than its key does
        return f"{where}: {key}: {message}"
    return f"{where}: {key} is {shown}; {message}"


def _walk(schema: type[Frozen], loc: tuple[str | int, ...]) -> tuple[list[str], list[str]]:
    """Returns the keys of ``loc`` as a user wrote them, and those that are allowed beside the last.

    pydantic puts the tag of a union's member between the keys, such as ``moe`` in model.ffn.moe.E.
    """
    keys: list[str] = []
    here, beside = _models(schema), _models(schema)
    for key in loc:
        fields = [m.model_fields[key] for m in here if key in m.model_fields]
        if not fields and (tagged := [m for m in here if _has_tag(m, key)]) and len(here) > 1:
            here = tagged
            continue
        keys.append(str(key))
        beside = here
        if fields:
            here = _models(fields[0].annotation)
    return keys, sorted({name for m in beside for name in m.model_fields})


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Returns the models in an annotation, however deep in unions, tuples and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _has_tag(model: type[BaseModel], tag: str | int) -> bool:
    return any(tag in get_args(field.annotation) for field in model.model_fields.values())
