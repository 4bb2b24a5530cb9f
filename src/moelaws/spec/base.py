"""Frozen, validated data: numbers that YAML left as strings, unknown keys, canonical JSON."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from moelaws.spec.errors import UserError, listed, or_nearest
from moelaws.spec.numbers import amount
from moelaws.spec.validation import mistakes, must_be

MAX_MISTAKES = 6  # reported at once: one slip of indentation may make dozens


def _number(value: object) -> object:
    # YAML 1.1 reads 1e20 and 3e-3 as strings, and True is an int to Python.
    if isinstance(value, bool):
        raise must_be("a number, not true or false")
    if isinstance(value, str):
        try:
            value = amount(value)
        except ValueError:
            raise must_be("a number") from None
    try:
        if isinstance(value, int | float) and not math.isfinite(value):
            raise must_be("a finite number")
    except OverflowError:
        raise must_be("a number below 1e308") from None
    return value


def _whole(value: object) -> object:
    value = _number(value)
    if isinstance(value, float):
        if not value.is_integer():
            raise must_be("a whole number")
        return int(value)
    return value


def text_like(pattern: str, words: str) -> AfterValidator:
    """Returns a validator of texts that match ``pattern``; messages describe them as ``words``."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise must_be(words)
        return value

    return AfterValidator(check)


Real = Annotated[float, BeforeValidator(_number)]
Rate = Annotated[Real, Field(gt=0, le=1000)]  # a learning rate
Positive = Annotated[Real, Field(gt=0)]
# Of Huber losses: beyond these ends each loss of a residual is a square, or none is.
Threshold = Annotated[Real, Field(ge=1e-12, le=1e12)]
NonNegative = Annotated[Real, Field(ge=0)]
Fraction = Annotated[Real, Field(ge=0, le=1)]
Inside = Annotated[Fraction, Field(gt=0, lt=1)]
BelowOne = Annotated[Real, Field(ge=0, lt=1)]
Integer = Annotated[int, BeforeValidator(_whole)]
# The limits lie far beyond any study. They refuse a slip of the keyboard.
Whole = Annotated[Integer, Field(ge=0, le=10**18)]
Count = Annotated[Integer, Field(ge=1, le=10**18)]
Seed = Annotated[Integer, Field(ge=0, lt=2**63)]
Size = Annotated[Integer, Field(ge=1, le=10**6)]  # of a part of a model
Each = TypeVar("Each")
Filled = Annotated[tuple[Each, ...], Field(min_length=1)]  # a list that is not empty


def key_of(value: Any, key: str) -> str:
    """Returns the text under a key of an entry, given as data or built; empty if it has none."""
    text = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
    return str(text or "")


def text_as(key: str) -> BeforeValidator:
    """Returns a validator that takes a text for an entry with this key alone."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class Frozen(BaseModel):
    """Immutable data without unknown keys; hashable if its fields are."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _knows_its_keys(cls, data: Any) -> Any:
        known = sorted(field.alias or name for name, field in cls.model_fields.items())
        asked = isinstance(data, dict) and cls.model_config["extra"] == "forbid"
        for key in data if asked else ():
            if key not in known:
                near = or_nearest(key, known, "allowed here")
                raise ValueError(f"unknown key {listed([key])}{near}")
        return data

    def canonical_json(self) -> str:
        """Returns JSON with sorted keys and no defaults: so a new field changes no old text."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def fingerprint(self) -> str:
        """Returns the first 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]


T = TypeVar("T", bound=Frozen)
Written = TypeVar("Written")


def as_written(schema: type[Written], data: object) -> Written:
    """Returns JSON data of this package as ``schema``; raises pydantic's ValidationError."""
    return TypeAdapter(schema).validate_json(json.dumps(data), strict=True)


def parse(schema: type[T], data: object, where: str | Path, strict: bool = False) -> T:
    """Validates ``data`` against ``schema``.

    The ``UserError`` has a line per mistake: ``where``, the key, its value and what is allowed.
    ``strict`` is for what this package wrote as JSON: true is no number then, nor is a text.
    """
    try:
        return as_written(schema, data) if strict else schema.model_validate(data)
    except ValidationError as error:
        every = mistakes(error, data)
        lines = [f"{where}: {mistake}" for mistake in every[:MAX_MISTAKES]]
        if more := len(every) - len(lines):
            lines.append(f"{where}: and {more} more like these")
        raise UserError("\n".join(lines)) from None
