"""A number that runs determine, with its interval, as claims compare and print it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A number that the runs determine, with its interval."""

    value: float  # NaN where the rows do not determine it
    # The ends are NaN where no degree of freedom is left, infinite where nothing bounds the value
    low: float
    high: float
    n: int  # rows behind it

    @property
    def interval(self) -> tuple[float, float, float]:
        """Returns the value, with the ends of its interval."""
        return self.value, self.low, self.high

    def __mul__(self, factor: float) -> "Estimate":
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.n)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "not determined"
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{self.value:.3g} (no interval)"
        if math.isinf(self.high):
            bound = f"{self.low:.3g} or more" if self.low > 0 else "anywhere"
            return f"{self.value:.3g} ({bound})"
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def ratio_of_times(
    row: Mapping[Any, Any], base: Mapping[Any, Any], name: str
) -> tuple[float, float, float]:
    """Returns the ratio of two times of ``moelaws speed`` and its interval, which is wide.

    Both times are over that of the first architecture in the same round. The ends are the least and
    the largest that both intervals allow.
    """
    if base["run_id"] == row["run_id"]:
        return 1.0, 1.0, 1.0
    low, high = f"{name}_low", f"{name}_high"
    return row[name] / base[name], row[low] / base[high], row[high] / base[low]


def number_or_nan(value: float | None) -> float:
    """Returns a number of a fit's report, in which a missing one is None."""
    return math.nan if value is None else float(value)
