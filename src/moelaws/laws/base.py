"""What a law declares: variables, parameters, published values, fit protocol, errata.

A law's module holds one such declaration as ``LAW``. Parameters have two scales: the natural one,
on which they are published and reported (A), and the working one, on which they are fitted (ln A
for a positive coefficient, the value itself for an exponent).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moelaws.spec.errors import UserError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = Mapping[str, Array]  # a law's variable -> its values, shape (n,)


@dataclass(frozen=True)
class Domain:
    """The values that a variable may take; ``text`` completes "NAME must be ..."."""

    text: str
    holds: Callable[[Array], Mask]


POSITIVE = Domain("a finite number above 0", lambda x: np.isfinite(x) & (x > 0))
SPARSITY = Domain("at least 0 and below 1", lambda x: (x >= 0) & (x < 1))


@dataclass(frozen=True)
class Variable:
    """A quantity that a table or a user supplies."""

    name: str
    unit: str
    description: str
    domain: Domain = POSITIVE


@dataclass(frozen=True)
class Parameter:
    """A number that a fit estimates; ``low`` and ``high`` bound it, on the natural scale."""

    name: str
    unit: str
    low: float
    high: float
    description: str
    scale: Literal["log", "linear"] = "linear"  # log: positive, fitted as its logarithm

    def working(self, value: float) -> float:
        return math.log(value) if self.scale == "log" else value


@dataclass(frozen=True)
class Protocol:
    """How a law is fitted.

    Attributes:
        objective: ``huber``, the sum of Huber losses over ln L; ``squared``, the sum of squares.
        delta: the Huber loss' threshold (residuals of ln L).
        grid: start values of each parameter on the working scale; the starts are their product.
        sample: how many of them are run, a seeded sample.
        holdout: the paper's own hold-out, for reference: a fit holds out what its user asks for.
        source: where the paper states all this.
    """

    objective: Literal["huber", "squared"]
    delta: float = 1e-3
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sample: int = 500
    holdout: str = ""
    source: str = ""

    @property
    def n_starts(self) -> int:
        """Number of starts of the whole grid; 1 where a law has none and needs none."""
        return math.prod(len(values) for values in self.grid.values())


@dataclass(frozen=True, kw_only=True)
class Law(ABC):
    """A parametric formula for a response; what it computes is left to its kind."""

    id: str
    title: str
    source: str  # paper key and equation
    equation: str
    latex: str
    variables: tuple[Variable, ...]
    response: Variable
    parameters: tuple[Parameter, ...]
    published: Mapping[str, float] | None
    protocol: Protocol
    errata: tuple[str, ...] = ()

    @abstractmethod
    def predict(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> Array:
        """The response in its natural unit.

        Args:
            params: value of every parameter, natural scale.
            columns: value of every variable; arrays or numbers that broadcast to one shape.

        Raises:
            UserError: for a parameter or a variable that is missing.
        """

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in the order of every parameter vector."""
        return tuple(p.name for p in self.parameters)

    @property
    def bounds(self) -> Array:
        """Bounds on the working scale, shape (P, 2)."""
        return np.array([[p.working(p.low), p.working(p.high)] for p in self.parameters])

    def vector(self, params: Mapping[str, float]) -> Array:
        """Working-scale vector (P,) of natural-scale ``params``.

        Raises:
            UserError: for a missing parameter, or one of a log scale that is not positive.
        """
        missing = [name for name in self.names if name not in params]
        if missing:
            raise UserError(
                f"law {self.id}: parameter {', '.join(missing)} is missing; "
                f"it needs {', '.join(self.names)}"
            )
        for p in self.parameters:
            if p.scale == "log" and not params[p.name] > 0:
                raise UserError(
                    f"law {self.id}: parameter {p.name} is {params[p.name]!r}; it must be above 0"
                )
        return np.array([p.working(float(params[p.name])) for p in self.parameters])

    def natural(self, theta: Array) -> Array:
        """Natural-scale values of working-scale vectors, shape (..., P)."""
        is_log = np.array([p.scale == "log" for p in self.parameters])
        return np.where(is_log, np.exp(np.where(is_log, theta, 0.0)), theta)

    def columns(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """The law's variables out of ``values``, as float arrays of one shape.

        Raises:
            UserError: for a variable that is missing.
        """
        missing = [v.name for v in self.variables if v.name not in values]
        if missing:
            raise UserError(
                f"law {self.id}: variable {', '.join(missing)} is missing; "
                f"it needs {', '.join(v.name for v in self.variables)}"
            )
        names = [v.name for v in self.variables]
        arrays = np.broadcast_arrays(*(np.asarray(values[name], dtype=float) for name in names))
        return dict(zip(names, arrays, strict=True))
