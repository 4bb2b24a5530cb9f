"""Intervals by the bootstrap over rows, and refits on random subsamples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moelaws.fitting.engine import descend
from moelaws.fitting.linear import least_squares
from moelaws.fitting.objective import HuberSum
from moelaws.laws.base import Array
from moelaws.laws.kinds import PowerLawDesign

BATCH = 100


def bootstrap_power_law(
    design: PowerLawDesign,
    ln_L: Array,
    delta: float,
    basins: Array,
    bounds: Array,
    draws: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Array:
    """Estimates (draws, P) refitted to rows drawn with replacement, on the working scale.

    Each draw starts from every one of ``basins`` (K, P) and the best is followed to its end: from
    the optimum alone, a term that vanished there would vanish in every draw.
    """
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(design.n, np.full(design.n, 1 / design.n), size=draws).astype(float)
    ends = []
    for first in range(0, draws, BATCH):
        weights = counts[first : first + BATCH]
        objective = HuberSum(design, ln_L, delta, weights)
        tries = [
            descend(objective, np.tile(theta, (len(weights), 1)), bounds, iterations=100)
            for theta in basins
        ]
        best = np.argmin([value for _, value in tries], axis=0)
        start = np.array([theta for theta, _ in tries])[best, np.arange(len(weights))]
        ends.append(descend(objective, start, bounds, iterations=300)[0])
        progress(min(first + BATCH, draws))
    return np.concatenate(ends)


def bootstrap_linear(X: Array, y: Array, draws: int, seed: int) -> Array:
    """Estimates (draws, P) refitted to rows drawn with replacement.

    A draw whose rows cannot tell the parameters apart is left out: fewer rows come back.
    """
    rng = np.random.default_rng(seed)
    samples = [rng.integers(len(y), size=len(y)) for _ in range(draws)]
    solutions = [least_squares(X[rows], y[rows]) for rows in samples]
    found = [solution.theta for solution in solutions if solution.full_rank]
    return np.array(found).reshape(-1, X.shape[1])


def percentiles(draws: Array, level: float) -> tuple[Array, Array]:
    """Bounds (P,) of the central ``level`` of draws (B, P); NaN where there is none."""
    if not len(draws):
        nothing = np.full(draws.shape[1], np.nan)
        return nothing, nothing
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def subsamples(X: Array, y: Array, level: float, seed: int, k: int = 100) -> dict[str, Any] | None:
    """Held-out errors of ``k`` refits, each on four fifths of the rows chosen at random.

    Returns k, the share fitted, and for Pearson's r and the mean squared error of the left-out
    rows the median and the central ``level``; None where fewer than 3 rows would be left out or
    the fitted ones would not suffice. Source: sparsity, App B (the share is not printed there).
    """
    n, P = X.shape
    n_fit = round(0.8 * n)
    if n - n_fit < 3 or n_fit <= P:
        return None
    rng = np.random.default_rng(seed)
    pearson, mse = [], []
    for _ in range(k):
        order = rng.permutation(n)
        fitted, held = order[:n_fit], order[n_fit:]
        predicted = X[held] @ least_squares(X[fitted], y[fitted]).theta
        mse.append(float(((predicted - y[held]) ** 2).mean()))
        if np.ptp(predicted) > 0 and np.ptp(y[held]) > 0:
            pearson.append(float(np.corrcoef(predicted, y[held])[0, 1]))
    tails = [(1 - level) / 2, 0.5, (1 + level) / 2]
    summary = {
        name: dict(zip(("low", "median", "high"), np.quantile(values, tails).tolist(), strict=True))
        for name, values in (("pearson", pearson), ("mse", mse))
        if values
    }
    return {"k": k, "share": n_fit / n} | summary
