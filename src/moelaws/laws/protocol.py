"""A law's fit protocol with what a fit overrides of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from moelaws.laws.base import FitProtocol, FittableLaw, Objective
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError

OBJECTIVES = get_args(Objective)


def own_overrides(law: FittableLaw, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what concerns ``law`` of overrides for several: a linear one has no starts."""
    starts = ("sample", "grid") if isinstance(law, LinearLaw) else ()
    return {key: value for key, value in overrides.items() if key not in starts}


def overridden(law: FittableLaw, overrides: Mapping[str, Any], name: str) -> FitProtocol:
    """Returns the law's protocol with a fit's overrides, which may name any of its traits.

    ``sample`` is how many starts are run, all of the grid for null; ``grid`` maps parameters to
    start values on the working scale and replaces theirs alone. A linear law has one optimum and
    no starts.

    Raises:
        UserError: for an unknown key or parameter, or a value that is not allowed.
    """
    linear = isinstance(law, LinearLaw)
    allowed = ("objective", "delta") if linear else ("objective", "delta", "sample", "grid")
    for key in overrides:
        if key not in allowed:
            raise UserError(
                f"fit {name}: protocol.{key} is unknown; {law.ref} allows {', '.join(allowed)}"
            )
    objective = overrides.get("objective", law.protocol.objective)
    if objective not in OBJECTIVES:
        raise UserError(
            f"fit {name}: protocol.objective is {objective!r}; it must be one of "
            f"{', '.join(OBJECTIVES)}"
        )
    try:
        delta = float(overrides.get("delta", law.protocol.delta))
        sample = overrides.get("sample", law.protocol.sample)
        sample = None if sample is None else int(sample)
        grid = {
            key: tuple(float(value) for value in values)
            for key, values in dict(overrides.get("grid", {})).items()
        }
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"fit {name}: protocol: {error}; its values must be numbers") from None
    if not 0 < delta < np.inf:
        raise UserError(f"fit {name}: protocol.delta is {delta}; it must be above 0")
    if sample is not None and sample < 1:
        raise UserError(f"fit {name}: protocol.sample is {sample}; it must be at least 1")
    for key, values in grid.items():
        if key not in law.names:
            raise UserError(
                f"fit {name}: protocol.grid.{key} is no parameter of {law.ref}; it has "
                f"{', '.join(law.names)}"
            )
        if not values or not np.isfinite(values).all():
            raise UserError(f"fit {name}: protocol.grid.{key} must be a list of finite numbers")
    return dataclasses.replace(
        law.protocol,
        objective=objective,
        delta=delta,
        sample=sample,
        grid={**law.protocol.grid, **grid},
    )
