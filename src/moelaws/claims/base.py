"""The evidence of runs for a paper's claim, and the verdict that follows by comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan
from typing import Any, NotRequired

from typing_extensions import TypedDict

from moelaws.analysis.effect import Effect


class Verdict(StrEnum):
    """Whether runs support a claim."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    CANNOT_TELL = "cannot tell at this scale"


@dataclass(frozen=True)
class Evidence:
    """What a claim's rule measures."""

    measured: str  # a sentence with the numbers, their intervals and how many runs there are
    effect: Effect | None = None  # the number that stands for the claim; none without evidence
    unit: str = ""  # of the effect
    # What is compared with what the claim expects, by default the effect. All must agree, and an
    # empty list decides nothing.
    decides: Sequence[Effect] | None = None
    needed: str = ""  # what would decide, if the study's entry does not say it for these runs

    @property
    def intervals(self) -> Sequence[tuple[float, float]]:
        """Returns the intervals that decide; none if the rule could not measure."""
        alone = [] if self.effect is None else [self.effect]
        return [(one.low, one.high) for one in (alone if self.decides is None else self.decides)]


class Registered(TypedDict):
    """How a claim kept to its registration, as JSON data."""

    state: str
    digest: str
    time: str
    deviations: list[str]


class PredictedBefore(TypedDict):
    """How losses that a fit predicted before the runs trained lie beside those that came."""

    fit: str
    law: str
    level: float
    losses: int  # with an interval
    inside: int  # of it
    rmse: float  # of all, nats/token


class JudgedClaim(TypedDict):
    """A claim with its verdict and the evidence, as JSON data."""

    name: str
    statement: str
    source: str
    rule: str
    figure: str
    verdict: str
    measured: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    # The verdict with its number as one sentence, and the number and its interval as it has them
    says: str
    shown: tuple[str, str]
    needed: str
    null: str  # a sentence on runs without the claim's effect; empty if there is none
    clearance: float | None  # how clearly the intervals decide (``clearance``)
    registered: NotRequired[Registered]  # trained losses alone have it


class JudgedStudy(TypedDict):
    """A study's claims with their verdicts, as JSON data."""

    study: str
    title: str
    source: str
    runs: str  # the name of imported runs; empty for others
    assumed: str
    claims: list[JudgedClaim]
    predicted: NotRequired[list[PredictedBefore]]
    stages: NotRequired[str]  # of the grid, whose runs alone are behind it; without it all are
    made_of: dict[str, Any]


# Which law gives the losses of a simulated table: the study's, fitted to the runs or as the paper
# publishes it, or that of a null, with the effect that it states or without
FITTED, PUBLISHED, EFFECT, NULL = "fitted", "published", "effect", "null"
NOMINAL = 0.05  # how often a 90 % interval lies wholly above a value that holds
Counts = dict[str, int]  # verdict -> in how many simulated tables it was given


class Tried(TypedDict):
    """Verdicts of a study's rules on simulated tables, as JSON data (``claims.power``)."""

    study: str
    tier: str
    tables: int
    noise: float  # standard deviation of ln L
    noise_of: str  # a sentence that says where the noise is taken from
    # claim -> which law gave the losses: fitted, published, effect or null -> counts of verdicts
    claims: dict[str, dict[str, Counts]]
    losses: dict[str, list[float]]  # of fitted and published: the least, the largest
    refused: list[str]  # why other laws say nothing of these runs, a sentence each
    trial: str  # digest of the grid and the rules (``files.trials``)
    made_of: dict[str, Any]


def clearance(
    intervals: Sequence[tuple[float, float]], above: float | None, below: float | None
) -> float:
    """Returns how clearly intervals lie away from the ends of what a claim expects.

    An interval's distance from an end is that of its middle, in half widths of the interval. At 1
    the interval just touches the end. The least distance is returned; NaN without an interval that
    has a width, and where an end of one is infinite.
    """
    ends = [end for end in (above, below) if end is not None]
    clear = [
        abs(low + high - 2 * end) / (high - low)
        for low, high in intervals
        if high > low
        for end in ends
    ]
    return min(clear, default=nan)


def verdict(
    intervals: Sequence[tuple[float, float]], above: float | None = None, below: float | None = None
) -> Verdict:
    """Returns the verdict on a claim that these intervals lie between ``above`` and ``below``.

    The claim is supported if all of them do, and not supported if one lies wholly outside. An
    interval across an end decides nothing, and neither do missing ends (NaN).
    """
    within, outside = [], []
    for low, high in intervals:
        within.append((above is None or low > above) and (below is None or high < below))
        outside.append((above is not None and high < above) or (below is not None and low > below))
    if any(outside):
        return Verdict.NOT_SUPPORTED
    known = not any(isnan(end) for ends in intervals for end in ends)
    return Verdict.SUPPORTED if intervals and all(within) and known else Verdict.CANNOT_TELL
