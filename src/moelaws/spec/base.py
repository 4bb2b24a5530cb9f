"""Frozen, validated data: numbers that YAML left as strings, unknown keys, canonical JSON."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, TypeVar

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
        """JSON with sorted keys and without defaults, so that a new field changes no old text."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def fingerprint(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]


T = TypeVar("T", bound=Frozen)


def parse(schema: type[T], data: object, where: str | Path) -> T:
    """Validate ``data`` against ``schema``.

    Raises:
        UserError: naming ``where``, the key, its value and what is allowed, a line a mistake.
    """
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        raise UserError("\n".join(_line(schema, where, e) for e in error.errors())) from None


def _line(schema: type[Frozen], where: str | Path, error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"]) or "(top level)"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        allowed = ", ".join(_fields_at(schema, error["loc"][:-1]))
        return f"{where}: unknown key {key}" + (f"; allowed here: {allowed}" if allowed else "")
    if error["type"] == "missing":
        return f"{where}: {key} is missing"
    shown = repr(error["input"])
    if len(shown) > 80:  # a whole mapping says nothing more than its key does
        return f"{where}: {key}: {message}"
    return f"{where}: {key} is {shown}; {message}"


def _fields_at(schema: Any, loc: tuple[Any, ...]) -> list[str]:
    """The keys allowed at ``loc``, or none where the schema branches on the way."""
    for part in loc:
        field = getattr(schema, "model_fields", {}).get(part)
        if field is None:
            return []
        schema = field.annotation
    return sorted(getattr(schema, "model_fields", {}))
