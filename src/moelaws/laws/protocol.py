"""A law's fit protocol with what a fit overrides of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.laws.base import Law, Protocol
from moelaws.laws.kinds import PowerLawSum
from moelaws.spec.errors import UserError


def overridden(law: Law, overrides: Mapping[str, Any], name: str) -> Protocol:
    """The law's protocol with a fit's overrides: ``delta``, ``sample`` and ``grid``.

    ``sample`` is how many starts are run; ``grid`` maps parameters to start values on the working
    scale and replaces theirs alone. A law of least squares has ``delta`` alone, for its metrics.

    Raises:
        UserError: for an unknown key or parameter, or a value that is not allowed.
    """
    allowed = {"delta", "sample", "grid"} if isinstance(law, PowerLawSum) else {"delta"}
    for key in overrides:
        if key not in allowed:
            raise UserError(
                f"fit {name}: protocol.{key} is unknown; {law.id} allows "
                f"{', '.join(sorted(allowed))}"
            )
    try:
        delta = float(overrides.get("delta", law.protocol.delta))
        sample = int(overrides.get("sample", law.protocol.sample))
        grid = {
            key: tuple(float(value) for value in values)
            for key, values in dict(overrides.get("grid", {})).items()
        }
    except (TypeError, ValueError) as error:
        raise UserError(f"fit {name}: protocol: {error}; numbers are wanted") from None
    if not 0 < delta < np.inf:
        raise UserError(f"fit {name}: protocol.delta is {delta}; it must be above 0")
    if sample < 1:
        raise UserError(f"fit {name}: protocol.sample is {sample}; it must be at least 1")
    for key, values in grid.items():
        if key not in law.names:
            raise UserError(
                f"fit {name}: protocol.grid.{key} is no parameter of {law.id}; it has "
                f"{', '.join(law.names)}"
            )
        if not values or not np.isfinite(values).all():
            raise UserError(f"fit {name}: protocol.grid.{key}: a list of finite numbers is wanted")
    return dataclasses.replace(
        law.protocol, delta=delta, sample=sample, grid={**law.protocol.grid, **grid}
    )
