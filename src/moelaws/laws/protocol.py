"""A law with what a fit states of it: its protocol, and what is known of its parameters."""

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


def assumed(
    law: FittableLaw,
    fixed: Mapping[str, float],
    priors: Mapping[str, tuple[float, float]],
    name: str,
) -> FittableLaw:
    """Returns the law with parameters ``fixed`` at a value, or with a normal prior of each.

    Values, means and standard deviations are on the natural scale. A UserError names a parameter
    that the law lacks, one that has both, a value outside its bounds, and a linear law.
    """
    if not (fixed or priors):
        return law
    bounds = {p.name: (p.low, p.high) for p in law.parameters}
    for parameter, value in [*fixed.items(), *((n, mean) for n, (mean, _) in priors.items())]:
        if isinstance(law, LinearLaw):
            raise UserError(f"fit {name}: {law.ref} is linear: it has no bounds and no priors")
        if parameter not in bounds:
            known = ", ".join(law.names)
            raise UserError(f"fit {name}: {law.ref} has no parameter {parameter!r}; it has {known}")
        low, high = bounds[parameter]
        if not low <= value <= high:
            raise UserError(
                f"fit {name}: {parameter} is {value:g}; it must be between {low:g} and {high:g}"
            )
    if both := fixed.keys() & priors.keys():
        raise UserError(f"fit {name}: {min(both)} is fixed, so that it has no prior")
    parameters = [
        dataclasses.replace(p, low=fixed[p.name], high=fixed[p.name])
        if p.name in fixed
        else dataclasses.replace(p, prior=priors.get(p.name))
        for p in law.parameters
    ]
    starts = {p.name: (p.working(p.low),) for p in parameters if p.name in fixed}
    protocol = dataclasses.replace(law.protocol, grid={**law.protocol.grid, **starts})
    return dataclasses.replace(law, parameters=tuple(parameters), protocol=protocol)


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
