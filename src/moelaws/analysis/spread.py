"""The spread of losses between seeds beside what all arms of a comparison share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moelaws.analysis.regression import LEVEL, indicators
from moelaws.fitting.quantiles import t_interval

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Spread:
    """A standard deviation between seeds, NaN where it is unknown, and its degrees of freedom.

    Runs of one seed see the same batches in every arm, so some of a seed's effect is common to all
    arms and cancels in their differences. The spread is that of the rest.
    """

    sd: float
    freedom: int

    @classmethod
    def of(cls, cells: Sequence[BySeed]) -> Spread:
        """Returns the spread about the least-squares sum of an effect of cells and one of seeds.

        Cells that all have the same seeds have (cells - 1)(seeds - 1) degrees of freedom.
        """
        places = [(cell, *item) for cell, values in enumerate(cells) for item in values.items()]
        cell, seed, values = np.array(places, float).reshape(-1, 3).T
        design = np.hstack([indicators(cell), indicators(seed)])
        sums, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
        freedom = len(places) - int(rank)
        squares = float(np.square(values - design @ sums).sum())
        return cls(math.sqrt(squares / freedom) if freedom else math.nan, freedom)

    def difference(self, one: BySeed, other: BySeed) -> tuple[float, float, float]:
        """Returns the mean difference over the seeds of both and its interval, NaN without any."""
        both = one.keys() & other.keys()
        if not both:
            return math.nan, math.nan, math.nan
        mean = float(np.mean([one[seed] - other[seed] for seed in sorted(both)]))
        return mean, *t_interval(mean, self.sd * math.sqrt(2 / len(both)), self.freedom, LEVEL)
