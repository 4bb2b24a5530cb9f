"""What a fit's report says of its optimum, its residuals and its rows, as plain data.

The fields are the keys of the report's JSON, in their order. This module imports nothing that makes
a fit, so that code which only reads fits does not depend on the engine.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import PlainValidator


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it is not a number")
    return value


# A number as JSON writes it: an int stays an int, and null is NaN.
Number = Annotated[float, PlainValidator(_number)]


@dataclass(frozen=True)
class Starts:
    """How many starts were run, survived pruning and reached the optimum."""

    run: int
    survived: int
    reached: int  # survivors that ended within a thousandth of the optimum's objective
    sample: int  # starts that were never pruned; 0 where no start was
    sample_reached: int
    pruning_lost: bool  # whether the sample led to a lower optimum than the survivors
    grid: int  # starts of the protocol, of which all or a sample were run


@dataclass(frozen=True)
class NearOptimum:
    """An optimum that is nearly as good as the best and far from it."""

    params: dict[str, Number]  # natural scale
    objective_excess: Number  # relative to the best's
    prediction_differs: Number  # the largest over the fitted rows; relative for a law of logarithms


@dataclass(frozen=True)
class NearOptima:
    """The near optima, best first, whose objective is within a factor of ``within`` of the best."""

    within: Number
    optima: list[NearOptimum]


@dataclass(frozen=True)
class DrawCount:
    """How many draws the fit's entry requests, and how many the intervals rest on."""

    requested: int
    used: int
    # The factor by which predictions are moved away from the estimate (``quantiles.stretched``).
    stretch: Number = 1.0


@dataclass(frozen=True)
class Diagnostics:
    """How a fit's optimum was sought and how well the rows determine it."""

    seed: int  # of samples of starts and of the draws
    objective: str  # of the protocol
    delta: Number  # of the protocol
    newton_decrease: Number  # what a Newton step would gain, relative to the objective
    condition_number: Number | None  # of the scaled Hessian; None in a file if it was infinite
    at_bounds: list[str] = field(default_factory=list)  # parameters that a bound holds
    starts: Starts | None = None  # None for a linear law
    near_equivalent: NearOptima | None = None  # None for a linear law
    draws: DrawCount = DrawCount(0, 0)
    unidentified: list[str] = field(default_factory=list)  # parameters not determined by the rows

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON data, without those that the law lacks."""
        optional = ("starts", "near_equivalent")
        return {k: v for k, v in asdict(self).items() if v is not None or k not in optional}


@dataclass(frozen=True)
class Residuals:
    """Spread and quantiles of residuals on the law's scale, observed minus fitted.

    Without a degree of freedom there are none.
    """

    sd: Number | None = None  # standard deviation
    quantiles: list[Number] | None = None  # of a new observation's error, 0.5 % to 99.5 %


@dataclass(frozen=True)
class ProfileInterval:
    """A parameter's profile-likelihood interval, natural scale."""

    estimate: Number  # where the likelihood is greatest
    low: Number | None  # None where the rows do not bound the parameter on that side
    high: Number | None
    curve: list[list[Number]]  # [value, negative log-likelihood], by rising value


# Of fits to three or four budgets of public tables, 17 roll-outs up to 6 times the compute: the
# error per decade in the median table (benchmarks/calibration.py)
PUBLIC_RATE, PUBLIC_ROUNDS = 0.026, 17.0


@dataclass(frozen=True)
class Calibration:
    """How fits to the cheaper rows erred on the dearer ones, on the law's scale.

    Without rounds, fits to public runs say how far such a fit errs.
    """

    powers: dict[str, Number]  # the powers of variables whose product is the compute up to a factor
    largest: Number  # log10 of that product, over the fitted rows
    rates: list[Number]  # error per decade of distance of each round, by rising compute
    scatter: Number  # standard deviation of the runs of one budget about their mean

    @property
    def has_rounds(self) -> bool:
        """Tells whether fits to the cheaper rows could be made."""
        return bool(self.rates)

    @property
    def weights(self) -> list[float]:
        """Returns how much each round counts: a later one is more like what is asked.

        The factor was chosen by nested roll-outs of public tables (docs/fitting.md).
        """
        powers = [0.6**i for i in range(len(self.rates))][::-1]
        return [power / sum(powers) for power in powers]

    @property
    def per_decade(self) -> float:
        """Returns the root mean square error of the rounds per decade."""
        if not self.rates:
            return PUBLIC_RATE
        pairs = zip(self.weights, self.rates, strict=True)
        return math.sqrt(sum(weight * rate**2 for weight, rate in pairs))

    @property
    def freedom(self) -> float:
        """Returns the effective number of rounds."""
        return 1 / sum(weight**2 for weight in self.weights) if self.rates else PUBLIC_ROUNDS


@dataclass(frozen=True)
class Support:
    """Where a fit's rows lie: their convex hull, as half-spaces normal . x <= offset."""

    ranges: dict[str, list[Number]]  # variable -> its least and its largest value
    variables: list[str]  # the V that vary; each is scaled to its range in what follows
    normals: list[list[Number]] = field(default_factory=list)  # (K, V)
    offsets: list[Number] = field(default_factory=list)  # (K,)

    def __post_init__(self) -> None:
        numbers = [self.offsets, *self.ranges.values(), *self.normals]
        if not (
            len(self.normals) == len(self.offsets)
            and all(len(normal) == len(self.variables) for normal in self.normals)
            and all(len(ends) == 2 for ends in self.ranges.values())
            and set(self.variables) <= set(self.ranges)
            and all(math.isfinite(x) for row in numbers for x in row)
        ):
            raise ValueError("ranges, variables, normals and offsets do not fit together")
