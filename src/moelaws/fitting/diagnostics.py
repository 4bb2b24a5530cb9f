"""What a fit's report says of its optimum, its residuals and its rows, as plain data.

Nothing here is imported but the standard library, so that what only reads a fit depends on no code
that makes one. The fields are the keys of the report's JSON, in their order.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Search:
    """What became of the starts: how many were run, survived pruning and reached the optimum."""

    run: int
    survived: int
    reached: int  # of the survivors: ended within a thousandth of the optimum's objective
    sample: int  # never pruned; 0 where nothing was
    sample_reached: int
    pruning_lost: bool  # the sample found a lower optimum than the survivors


@dataclass(frozen=True)
class Starts(Search):
    """A search among the ``grid`` starts of the protocol, or a sample of them."""

    grid: int


@dataclass(frozen=True)
class NearOptimum:
    """An optimum that is nearly as good as the best and far from it."""

    params: dict[str, float]  # natural scale
    objective_excess: float  # over the best's, relatively
    parameters_differ: float  # at most from the best's; of coefficients, their logarithms
    prediction_differs: float  # at most over the fitted rows; relatively, for a law of logarithms


@dataclass(frozen=True)
class NearOptima:
    """The near optima, best first, whose objective is within a factor of ``within`` of the best."""

    within: float
    optima: list[NearOptimum]


@dataclass(frozen=True)
class Subsamples:
    """Errors of the rows that refits to a random ``share`` of them left out, on the law's scale."""

    share: float
    mse: float
    pearson: float | None


@dataclass(frozen=True)
class DrawCount:
    """How many draws the fit's entry requests, and how many the intervals rest on."""

    requested: int
    used: int


@dataclass(frozen=True)
class Diagnostics:
    """How a fit's optimum was looked for and how well the rows determine it.

    Attributes:
        seed: of samples of starts and of the draws.
        objective, delta: the protocol's.
        newton_decrease: what a Newton step would gain, relative to the objective.
        condition_number: of the scaled Hessian; None in a report read back where it was infinite.
        at_bounds: parameters that a bound holds.
        sigma: scale of the residuals, for the objective ``huber_scale``; else None.
        starts, near_equivalent: of the search; None for a linear law, which needs none.
        subsamples: of a linear law whose random subsamples determine it; else None.
        draws: how many draws the intervals rest on.
        unidentified: parameters whose intervals say that these rows do not determine them.
    """

    seed: int
    objective: str
    delta: float
    newton_decrease: float
    condition_number: float | None
    at_bounds: list[str] = field(default_factory=list)
    sigma: float | None = None
    starts: Starts | None = None
    near_equivalent: NearOptima | None = None
    subsamples: Subsamples | None = None
    draws: DrawCount = DrawCount(0, 0)
    unidentified: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON data, without those that the law or objective lacks."""
        of_other_laws = ("starts", "near_equivalent") if self.starts is None else ("subsamples",)
        data = asdict(self)
        absent = [key for key in ("sigma", *of_other_laws) if data[key] is None]
        return {key: value for key, value in data.items() if key not in absent}


@dataclass(frozen=True)
class Residuals:
    """Spread, normality and quantiles of residuals on the law's scale, observed minus fitted.

    Attributes:
        sd: standard deviation; None where no degree of freedom is left, as the quantiles then are.
        skew, excess_kurtosis, normal_p: moments and the p-value of Jarque-Bera's test of normality;
            None for fewer than 8 rows.
        quantiles: of a new observation's error at evenly spaced levels from 0.5 % to 99.5 %.
    """

    sd: float | None = None
    skew: float | None = None
    excess_kurtosis: float | None = None
    normal_p: float | None = None
    quantiles: list[float] | None = None


@dataclass(frozen=True)
class ProfileInterval:
    """A parameter's profile-likelihood interval (see ``fitting.profile``), natural scale.

    Attributes:
        estimate: where the likelihood is greatest.
        low, high: None where the rows do not hold the parameter on that side.
        curve: [value, negative log-likelihood], by rising value; the interval is read from it.
    """

    estimate: float
    low: float | None
    high: float | None
    curve: list[list[float]]


@dataclass(frozen=True)
class Rollout:
    """What the rows up to one value of the roll-out's column say of the rows above it.

    Attributes:
        below: the largest value that is fitted.
        reason: why the law could not be fitted; None where it was.
        n, params: rows fitted, and the estimates; None where it was not fitted.
        errors: on the rows above (see ``fitting.goodness.errors``); None where it was not fitted.
    """

    below: float
    reason: str | None = None
    n: int | None = None
    params: dict[str, float] | None = None
    errors: dict[str, float | None] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON data, without those that are None."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Support:
    """Where a fit's rows lie: their convex hull (see ``fitting.support``).

    Attributes:
        ranges: variable -> its least and its largest value.
        variables: those (V) that vary, each scaled to its range in what follows.
        normals, offsets: (K, V) and (K,) of the half-spaces normal . x <= offset.
    """

    ranges: dict[str, list[float]]
    variables: list[str]
    normals: list[list[float]] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)

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
