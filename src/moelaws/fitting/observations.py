"""The rows that the engine fits a law to, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

from moelaws.laws.base import Array


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What a law is fitted to.

    Attributes:
        columns: variable -> (n,).
        response: (n,) in its natural unit.
        weights: (n,) of the squared residuals on the objective's scale, of mean 1; None if equal.
    """

    columns: dict[str, Array]
    response: Array
    weights: Array | None = None
