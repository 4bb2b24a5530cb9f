"""One number with its interval, as derived tables hold it and claims compare and print it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from moelaws.laws.base import Array


@dataclass(frozen=True)
class Effect:
    """A number that the runs determine, with its interval."""

    value: float  # NaN where the rows do not determine it
    # The ends are NaN where there is no interval, infinite where nothing bounds the value
    low: float = math.nan
    high: float = math.nan
    n: int = 0  # rows behind it
    of: str = ""  # the budget, the corpus or the router that it is of
    note: str = ""  # why it has no value or no interval

    @classmethod
    def of_row(cls, row: Any, name: str, of: str = "") -> Self:
        """Returns the number in the column ``name`` of a table's row, with the ends beside it.

        The ends are in the columns NAME_low and NAME_high or, where there are none, low and high.
        """
        before = f"{name}_" if f"{name}_low" in row else ""
        value, low, high = (float(row[x]) for x in (name, f"{before}low", f"{before}high"))
        return cls(value, low, high, row.get("n", 0), of, row.get("note", ""))

    @property
    def interval(self) -> tuple[float, float, float]:
        """Returns the value, with the ends of its interval."""
        return self.value, self.low, self.high

    def map(self, function: Callable[[Array], Any]) -> Self:
        """Returns a monotone ``function`` of the number, with the interval that follows."""
        value, *ends = np.asarray(function(np.array(self.interval))).tolist()
        low, high = ends if not ends[0] > ends[1] else reversed(ends)
        return replace(self, value=value, low=low, high=high)

    def __mul__(self, factor: float) -> Self:
        return self.map(lambda number: number * factor)

    def __str__(self) -> str:
        if self.note:
            return self.note
        if math.isnan(self.value):
            return "not determined"
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{self.value:.3g} (no interval)"
        if math.isinf(self.high):
            bound = f"{self.low:.3g} or more" if self.low > 0 else "anywhere"
            return f"{self.value:.3g} ({bound})"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def ratio_of_times(row: Mapping[Any, Any], base: Mapping[Any, Any], name: str) -> Effect:
    """Returns the ratio of two times of ``moelaws speed``, whose interval is wide.

    Both times are over that of the first architecture in the same round. The ends are the least and
    the largest that both intervals allow.
    """
    if base["run_id"] == row["run_id"]:
        return Effect(1.0, 1.0, 1.0)
    low, high = f"{name}_low", f"{name}_high"
    return Effect(row[name] / base[name], row[low] / base[high], row[high] / base[low])
