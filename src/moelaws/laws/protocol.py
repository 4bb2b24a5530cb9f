"""A law's fit protocol with what a fit overrides of it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from moelaws.laws.base import FitProtocol, FittableLaw, Objective
from moelaws.laws.forms import LinearLaw
from moelaws.spec.base import Count, Frozen, Real, Threshold, parse
from moelaws.spec.errors import UserError


class _Traits(Frozen):
    """The traits that a fit may override of any law; a linear law has one optimum and no starts."""

    objective: Objective = "huber"
    delta: Threshold = 1e-3


class _Search(_Traits):
    """The traits that a fit may override of a law with starts; without ``sample`` all are run."""

    sample: Count | None = None
    grid: dict[str, tuple[Real, ...]] = {}


def own_overrides(law: FittableLaw, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the overrides for several laws that concern ``law``: a linear one has no starts."""
    starts = ("sample", "grid") if isinstance(law, LinearLaw) else ()
    return {key: value for key, value in overrides.items() if key not in starts}


def overridden(law: FittableLaw, overrides: Mapping[str, Any], name: str) -> FitProtocol:
    """Returns the law's protocol with the overrides of the fit ``name``.

    A ``grid``, on the working scale, replaces the starts of only those parameters that it names. A
    UserError names an unknown key or parameter, or a value that is not allowed.
    """
    where = f"fit {name}: protocol"
    schema = _Traits if isinstance(law, LinearLaw) else _Search
    given = parse(schema, dict(overrides), where).model_dump(exclude_unset=True)
    grid = given.pop("grid", {})
    for key, values in grid.items():
        if key not in law.names:
            known = ", ".join(law.names)
            raise UserError(f"{where}.grid.{key} is no parameter of {law.ref}; it has {known}")
        if not values:
            raise UserError(f"{where}.grid.{key} has no values")
    return dataclasses.replace(law.protocol, **given, grid={**law.protocol.grid, **grid})
