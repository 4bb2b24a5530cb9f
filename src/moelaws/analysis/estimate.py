"""A number that runs determine, with its interval, as claims compare and print it."""

import math
from dataclasses import dataclass


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


def number_or_nan(value: float | None) -> float:
    """Returns a number of a fit's report, in which a missing one is None."""
    return math.nan if value is None else float(value)
