"""What a law declares: variables, results, equation, errata and, if it is fitted, how.

A law's module holds one such declaration as ``LAW``. Other forms of the law, such as the printed
form of a misprinted equation, are in ``VARIANTS`` by name. Parameters have two scales: the natural
one, on which they are published and reported (A), and the working one, on which they are fitted
(ln A for a positive coefficient, the value itself for an exponent).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from moelaws.spec.errors import UserError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = Mapping[str, Array]  # a law's variable -> its values, shape (n,)
Starts = tuple[float, ...]  # of a parameter, on the working scale
Objective = Literal["huber", "squared", "absolute"]


@dataclass(frozen=True)
class Domain:
    """The values that a variable may take; ``text`` completes "NAME must be ..."."""

    text: str
    holds: Callable[[Array], Mask]


# No quantity comes near 1e100, whose fourth power is too large for a float64.
POSITIVE = Domain("a number above 0 and below 1e100", lambda x: (x > 0) & (x < 1e100))
NOT_NEGATIVE = Domain("at least 0 and below 1e100", lambda x: (x >= 0) & (x < 1e100))
AT_LEAST_1 = Domain("at least 1 and below 1e100", lambda x: (x >= 1) & (x < 1e100))
SPARSITY = Domain("at least 0 and below 1", lambda x: (x >= 0) & (x < 1))
FRACTION = Domain("above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
BELOW_1 = Domain("above 0 and below 1", lambda x: (x > 0) & (x < 1))


@dataclass(frozen=True)
class Variable:
    """A quantity that a table or a user supplies, or that a law results in."""

    name: str
    unit: str
    description: str
    domain: Domain = POSITIVE
    default: float | None = None  # its value if not given; NaN if a formula has results without it
    # If the result is the number of a case, the cases' names, from 0 on.
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A number that a fit estimates."""

    name: str
    unit: str
    low: float  # its bounds, on the natural scale
    high: float
    description: str
    scale: Literal["log", "linear"] = "linear"  # log: positive, and fitted as its logarithm
    published: float | None = None  # the paper's value, on the natural scale
    starts: Starts = ()  # where fits start
    # Mean and standard deviation of a normal prior, natural scale, that a fit takes as a row
    prior: tuple[float, float] | None = None

    def working(self, value: float) -> float:
        return math.log(value) if self.scale == "log" else value


def signed(
    name: str, bound: float, description: str, published: float | None = None, starts: Starts = ()
) -> Parameter:
    """Returns a parameter that is a pure number between ``-bound`` and ``bound``."""
    return Parameter(name, "1", -bound, bound, description, "linear", published, starts)


@dataclass(frozen=True)
class FitProtocol:
    """How a law is fitted.

    The objective is over residuals on the law's scale (ln L for a loss): ``huber``, the sum of
    Huber losses; ``squared``, the sum of squares; ``absolute``, the sum of absolute values. The
    starts are all combinations of the ``grid``; an empty grid is filled with the starts of the
    parameters.
    """

    objective: Objective
    source: str = ""  # where the paper states all this
    holdout: str = ""  # the paper's, for reference: a fit holds out what its entry says
    delta: float = 1e-3  # the Huber threshold, in units of the residual
    grid: Mapping[str, Starts] = field(default_factory=dict)  # on the working scale
    sample: int | None = None  # how many starts are run, a seeded sample; None for all

    @property
    def n_starts(self) -> int:
        """Counts the starts of the whole grid; 1 for a law that needs none."""
        return math.prod(len(values) for values in self.grid.values())

    @property
    def n_run(self) -> int:
        """Counts the starts that are run: the sample, or all."""
        return min(self.n_starts, self.sample or self.n_starts)


@dataclass(frozen=True)
class Derivation:
    """How a variable follows from others."""

    result: str
    needs: tuple[str, ...]
    text: str  # as it is printed
    function: Callable[..., Array]


@dataclass(frozen=True, kw_only=True)
class Law(ABC):
    """A relation between quantities of the field."""

    id: str
    title: str
    source: str  # paper key and equation
    equation: str
    latex: str
    variables: tuple[Variable, ...]
    errata: tuple[str, ...] = ()
    # Derivations of its variables that the vocabulary does not have.
    derivations: tuple[Derivation, ...] = ()
    variant: str = ""  # the form's name among the module's VARIANTS; empty for LAW itself
    kind: ClassVar[str] = "general"  # how it is computed, in words

    @property
    def ref(self) -> str:
        """Returns the name of law and form: ``allocation.loss`` or ``allocation.loss:sqlog``."""
        return f"{self.id}:{self.variant}" if self.variant else self.id

    @property
    @abstractmethod
    def results(self) -> tuple[Variable, ...]:
        """Returns the quantities that the law results in."""

    @property
    @abstractmethod
    def published(self) -> Mapping[str, float] | None:
        """Returns the paper's coefficients, natural scale; None where it prints none."""

    @abstractmethod
    def evaluate(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> dict[str, Array]:
        """Returns every result by name, in its natural unit.

        ``params`` are on the natural scale, ``columns`` arrays or numbers that broadcast to one
        shape. A parameter or a variable that is missing is a UserError.
        """

    def columns(self, values: Mapping[str, Any]) -> dict[str, Array]:
        """Returns the law's variables out of ``values`` or defaults, as floats of one shape."""
        given = {v.name: values.get(v.name, v.default) for v in self.variables}
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise UserError(
                f"law {self.ref}: variable {', '.join(missing)} is missing; "
                f"it needs {', '.join(v.name for v in self.variables if v.default is None)}"
            )
        arrays = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in given.values()))
        return dict(zip(given, arrays, strict=True))


@dataclass(frozen=True, kw_only=True)
class Formula(Law):
    """A relation that is computed and never fitted, such as an optimum in closed form."""

    kind = "formula"
    outputs: tuple[Variable, ...]
    # Variables, arrays of one shape -> results by name; NaN where a variable that it needs is NaN
    function: Callable[[Columns], Mapping[str, Any]]
    constants: Mapping[str, float] = field(default_factory=dict)  # published values that it uses

    @property
    def results(self) -> tuple[Variable, ...]:
        return self.outputs

    @property
    def published(self) -> Mapping[str, float]:
        return self.constants

    def evaluate(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> dict[str, Array]:
        """Returns every result by name; ``params`` is not used, since a formula has constants."""
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        outputs = self.function(values)
        return {r.name: np.full(shape, outputs[r.name], float) for r in self.outputs}


# What a model keeps of its predictions at a batch: arrays whose second last axis is the batch.
State = tuple[Array, ...]


class Model(Protocol):
    """A law over n fixed rows for B working-scale vectors of P parameters, on its own scale."""

    n: int
    n_params: int
    # (P, P): a step's length is step' metric step, such as the mean square change of ln L.
    metric: Array
    # Whether the prediction is the logarithm of a sum. Its second derivatives are then those of the
    # sum, relative to it, less the outer product of the Jacobian, which the engine computes anyway.
    log_of_sum: bool

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        """Returns predictions (B, n) and the state that ``jacobian`` and ``curvature`` need."""

    def jacobian(self, state: State) -> Array:
        """Returns d prediction / d parameter, (B, P, n); best a view of (P, B, n)."""

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        """Returns the sum over rows of psi times second derivatives, (B, P, P).

        The derivatives are of the prediction, or of the sum if the prediction is a ``log_of_sum``.
        A vector whose psi is 0 in all rows needs none.
        """

    def rows(self, index: NDArray[np.intp]) -> "Model":
        """Returns the model over some of the rows."""


@dataclass(frozen=True, kw_only=True)
class FittableLaw(Law):
    """A parametric formula for one response, whose parameters a fit estimates."""

    response: Variable
    parameters: tuple[Parameter, ...]
    protocol: FitProtocol
    log_response: bool = True  # whether residuals are of the response's logarithm

    def __post_init__(self) -> None:
        if not self.protocol.grid:
            grid = {p.name: p.starts for p in self.parameters if p.starts}
            object.__setattr__(self, "protocol", replace(self.protocol, grid=grid))

    @abstractmethod
    def model(self, columns: Columns) -> Model:
        """Returns the law over rows: ``columns`` of shape (n,)."""

    @property
    def results(self) -> tuple[Variable, ...]:
        return (self.response,)

    @property
    def published(self) -> Mapping[str, float] | None:
        values = {p.name: p.published for p in self.parameters if p.published is not None}
        return values or None

    def evaluate(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> dict[str, Array]:
        return {self.response.name: self.predict(params, columns)}

    def predict(self, params: Mapping[str, float], columns: Mapping[str, Any]) -> Array:
        """Returns the response in its natural unit; arguments and errors as of ``evaluate``."""
        return np.asarray(self.predict_batch(self.vector(params)[None], columns)[0])

    def predict_batch(self, theta_BP: Array, columns: Mapping[str, Any]) -> Array:
        """Returns the response of each working-scale vector: (B, *shape of the columns)."""
        values = self.columns(columns)
        shape = next(iter(values.values())).shape
        model = self.model({name: value.reshape(-1) for name, value in values.items()})
        prediction, _ = model.evaluate(theta_BP)
        return self.off_scale(prediction).reshape(len(theta_BP), *shape)

    def on_scale(self, response: Any) -> Array:
        """Returns the response on the scale of the objective's residuals."""
        return np.asarray(np.log(response) if self.log_response else response, float)

    def off_scale(self, values: Array) -> Array:
        """Returns values of that scale in the response's natural unit."""
        return np.exp(values) if self.log_response else values

    def fractions(self, params: Mapping[str, float], columns: Columns) -> dict[str, Array]:
        """Returns coefficient -> its term's fraction (n,) of the prediction, for a sum of terms."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the parameters' names, in the order of every parameter vector."""
        return tuple(p.name for p in self.parameters)

    @property
    def n_free(self) -> int:
        """Counts the parameters that a fit moves, whose bounds differ."""
        return sum(p.low < p.high for p in self.parameters)

    @property
    def bounds(self) -> Array:
        """Returns the bounds on the working scale, shape (P, 2)."""
        return np.array([[p.working(p.low), p.working(p.high)] for p in self.parameters])

    def vector(self, params: Mapping[str, float]) -> Array:
        """Returns the working-scale vector (P,) of all natural-scale ``params``."""
        missing = [name for name in self.names if name not in params]
        if missing:
            raise UserError(
                f"law {self.ref}: parameter {', '.join(missing)} is missing; "
                f"it needs {', '.join(self.names)}"
            )
        for p in self.parameters:
            if p.scale == "log" and not params[p.name] > 0:
                raise UserError(
                    f"law {self.ref}: parameter {p.name} is {params[p.name]!r}; it must be above 0"
                )
        return np.array([p.working(float(params[p.name])) for p in self.parameters])

    def natural(self, theta: Array) -> Array:
        """Returns natural-scale values of working-scale vectors, shape (..., P)."""
        is_log = np.array([p.scale == "log" for p in self.parameters])
        return np.where(is_log, np.exp(np.where(is_log, theta, 0.0)), theta)
