"""Means, slopes and contrasts with Student's intervals, as several studies' claims measure them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.analysis.effect import Effect
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.quantiles import t_interval

LEVEL = 0.9
BySeed = Mapping[Any, float]


def of_mean(values: ArrayLike) -> Effect:
    """Returns the mean of ``values`` (n,); a single one has no interval."""
    x = np.asarray(values, float)
    mean, n = float(x.mean()), len(x)
    error = float(x.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Effect(mean, *t_interval(mean, error, n - 1, LEVEL), n)


def of_draws(values: Array, n: int = 0, level: float = LEVEL) -> Effect:
    """Returns the first of ``values`` (1 + draws,) with the interval of the others, of n rows."""
    return Effect(float(values[0]), *percentile_interval(values[1:], level), n)


def slope_weights(x: Array) -> Array:
    """Returns the weights (n,) by which values at ``x`` (n,) sum to their slope on ``x``.

    They are NaN where ``x`` has fewer than two values.
    """
    if len(np.unique(x)) < 2:
        return np.full(len(x), np.nan)
    centred = x - x.mean()
    return np.asarray(centred / np.sum(centred**2))


def indicators(values: ArrayLike) -> Array:
    """Returns an indicator column for each distinct value, in rising order: (n, values)."""
    rounded = np.asarray(values, float).round(12)
    return np.asarray((rounded[:, None] == np.unique(rounded)).astype(float))


def contrast(X: Array, y: Array, weights: Array, level: float = LEVEL) -> Effect:
    """Returns ``weights`` (p,) times the least-squares coefficients of ``y`` (n,) on ``X`` (n, p).

    Its interval follows from the residuals by Student's t. Value and interval are NaN where ``X``
    has fewer than p independent columns.
    """
    n, p = X.shape
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    Z = X / scale
    if n < p or np.linalg.matrix_rank(Z) < p:
        return Effect(math.nan, n=n)
    coefficients, *_ = np.linalg.lstsq(Z, y, rcond=None)
    w = weights / scale
    value = float(w @ coefficients)
    if n == p:
        return Effect(value, n=n)
    variance = float(np.sum((y - Z @ coefficients) ** 2)) / (n - p)
    error = float(np.sqrt(variance * (w @ np.linalg.inv(Z.T @ Z) @ w)))
    return Effect(value, *t_interval(value, error, n - p, level), n)


@dataclass(frozen=True)
class Spread:
    """A standard deviation between seeds, NaN where it is unknown, and its degrees of freedom.

    Runs of one seed see the same batches in every arm, so some of a seed's effect is common to all
    arms and cancels in their differences. The spread is that of the rest.
    """

    sd: float
    freedom: int

    @classmethod
    def of(cls, cells: Sequence[BySeed]) -> "Spread":
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

    def difference(self, one: BySeed, other: BySeed) -> Effect:
        """Returns the mean difference over the seeds of both, which is NaN without any."""
        both = one.keys() & other.keys()
        if not both:
            return Effect(math.nan)
        mean = float(np.mean([one[seed] - other[seed] for seed in sorted(both)]))
        error = self.sd * math.sqrt(2 / len(both))
        return Effect(mean, *t_interval(mean, error, self.freedom, LEVEL), len(both))
