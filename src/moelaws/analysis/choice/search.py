"""Which runs of a search to train next: those that are expected to lower its least loss most.

A search tries values of some settings, such as learning rate and batch, and all else is the same.
A Gaussian process of its losses over the logarithms of these settings says how far below the least
loss known each run may end (expected improvement: Jones, Schonlau and Welch 1998).

Arrays: n runs of the pool, m settings.
"""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.analysis.choice.choose import POWER, Chosen
from moelaws.laws.base import Array, Mask

# Places of the first runs of a search, from -1 to 1 over the range of each setting. Where all of
# them failed, runs at the low end follow: rates that are too high diverge.
FIRST = 3
STARTS = (0.0, -0.5, 0.5, -1.0)
LENGTH = 0.6
NOISE = 0.1  # of a run's loss, in standard deviations of the losses known
# Losses so many times as far above the least one as the median is count as that: a rate that
# diverges says nothing of the losses near the best one.
REACH = 4.0
_below = np.vectorize(NormalDist().cdf)


def search(
    places: Array,  # (n, m) logarithms of the settings, from -1 to 1 over the range of each search
    groups: NDArray[Any],  # (n,) which search a run belongs to
    losses: Array,  # (n,) in nats a token; NaN where a run failed, or is free
    free: Mask,  # (n,) which runs may be trained
    costs: Array,  # (n,) FLOPs
    budget: float,  # FLOPs
    noise: float,  # standard deviation of ln L between two trainings of a run
) -> list[Chosen]:
    """Returns the ``free`` runs to train within ``budget``, in the order of their choice.

    The three first runs of a search lie apart, and come before all others; it has no further ones
    until they are trained. Behind them a run's gain is divided by the root of its cost, and the
    loss that is expected of it stands for its own when the next one is chosen. The ``error`` of a
    run is its gain as a part of the loss; that of a first run is NaN. Runs that gain less than a
    hundredth of ``noise`` are not chosen.
    """
    free, left = free.copy(), budget
    values = np.where(free, np.nan, np.nan_to_num(losses, nan=np.inf))
    plan: list[Chosen] = []
    while True:
        candidates = []
        for group in np.unique(groups[free & (costs <= left)]):
            own = np.flatnonzero(groups == group)
            can, known = free[own] & (costs[own] <= left), ~np.isnan(values[own])
            tried = int(np.sum(~free[own]))
            if tried >= FIRST and tried > known.sum():  # its first runs are not trained
                continue
            if tried < FIRST or not np.isfinite(values[own]).any():
                far = np.sum((places[own] - STARTS[min(tried, FIRST)]) ** 2, axis=1).round(9)
                i, gain, expected = int(np.where(can, far, np.inf).argmin()), np.nan, np.nan
                score = np.inf
            else:
                gains, means = _improvement(places[own], values[own], noise)
                i = int(np.where(can, gains, -1.0).argmax())
                gain, expected = float(gains[i]), float(means[i])
                score = gain / costs[own[i]] ** POWER
                if gain < noise / 100:
                    continue
            candidates.append((score, -costs[own[i]], int(own[i]), gain, expected))
        if not candidates:
            return plan
        _, _, run, gain, expected = max(candidates, key=lambda one: one[:2])
        plan.append(Chosen(run, float(costs[run]), gain, np.nan))
        free[run], left = False, left - float(costs[run])
        values[run] = expected


def _improvement(places: Array, values: Array, noise: float) -> tuple[Array, Array]:
    """Returns expected gains over the least loss known, as parts of it, and expected losses.

    Of ``values`` (n,) those of failed runs are infinite, and those that are not known are NaN.
    """
    known = ~np.isnan(values)
    least = values[known].min()
    most = least + REACH * max(float(np.median(values[known])) - least, 1e-3 * least)
    losses = np.minimum(values[known], most if np.isfinite(most) else 2 * least)
    middle, scale = losses.mean(), max(float(losses.std()), 1e-6 * least)
    apart = np.sum((places[:, None] - places[None, known]) ** 2, axis=2)
    cross = np.exp(-apart / (2 * LENGTH**2))  # (n, known)
    weights = np.linalg.solve(cross[known] + NOISE**2 * np.eye(len(losses)), cross.T)
    mean = middle + (losses - middle) @ weights
    spread = scale * np.sqrt(np.maximum(1 - np.sum(cross.T * weights, axis=0), 1e-12))
    z = (least - mean) / spread
    gain = spread * (z * _below(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    return gain / least, mean
