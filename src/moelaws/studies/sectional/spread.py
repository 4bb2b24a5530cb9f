"""How much another seed would move a number of an arm, beside what it moves in all arms alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moelaws.fitting.quantiles import t_interval
from moelaws.studies.sectional.arms import LEVEL

BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Spread:
    """A standard deviation between seeds, NaN where it is unknown, and its degrees of freedom.

    Runs of one seed see the same batches in every arm, so that a part of what a seed does is common
    to all arms and cancels in their differences. The spread is what remains.
    """

    sd: float
    freedom: int

    @classmethod
    def of(cls, cells: Sequence[BySeed]) -> Spread:
        """Returns the spread about the best sums of a number for each cell and one for each seed.

        Of cells that all have the same seeds the degrees of freedom are (cells - 1)(seeds - 1).
        """
        places = [(cell, seed) for cell, values in enumerate(cells) for seed in values]
        seeds = sorted({seed for _, seed in places})
        design = np.zeros((len(places), len(cells) + len(seeds)))
        for row, (cell, seed) in enumerate(places):
            design[row, [cell, len(cells) + seeds.index(seed)]] = 1
        values = np.array([cells[cell][seed] for cell, seed in places])
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
