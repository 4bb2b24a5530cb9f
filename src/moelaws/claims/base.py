"""A claim of a paper, the rule that decides it, and what runs say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from moelaws.analysis.inputs import Inputs


class Verdict(StrEnum):
    """What a rule can say."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    CANNOT_TELL = "cannot tell at this scale"


SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict


@dataclass(frozen=True)
class Finding:
    """What runs say of a claim.

    Attributes:
        verdict: by the claim's rule, never by hand.
        measured: what was seen, with numbers, intervals and how many runs.
        value, low, high: the number that the rule looks at and its interval, where there is one.
        unit: of these.
        needed: where the verdict is that none can be given: what would decide.
    """

    verdict: Verdict
    measured: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    needed: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim and its rule.

    Attributes:
        statement: what the paper claims, in our words.
        source: where: paper key and section, figure or equation.
        rule: what ``judge`` does, in a sentence or two.
        judge: the verdict on a study's table, fits and derived tables.
    """

    statement: str
    source: str
    rule: str
    judge: Callable[[Inputs], Finding]


def by_interval(low: float, high: float, threshold: float = 0.0) -> Verdict:
    """For a claim that a number is above ``threshold``: which side its whole interval lies on.

    Missing ends (NaN) decide nothing.
    """
    if low > threshold:
        return SUPPORTED
    if high < threshold:
        return NOT_SUPPORTED
    return CANNOT_TELL
