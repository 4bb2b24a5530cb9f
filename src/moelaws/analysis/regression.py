"""Means, slopes and contrasts with Student's intervals, as several studies' claims measure them."""

import math

import numpy as np
from numpy.typing import ArrayLike

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.quantiles import t_interval

LEVEL = 0.9


def of_mean(values: ArrayLike) -> Estimate:
    """Returns the mean of ``values`` (n,); a single one has no interval."""
    x = np.asarray(values, float)
    mean, n = float(x.mean()), len(x)
    error = float(x.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Estimate(mean, *t_interval(mean, error, n - 1, LEVEL), n)


def of_draws(values: Array, n: int) -> Estimate:
    """Returns the first of ``values`` (1 + draws,) with the interval of the others, of n rows."""
    return Estimate(float(values[0]), *percentile_interval(values[1:], LEVEL), n)


def slope_weights(x: Array) -> Array:
    """Returns the weights (n,) by which values at ``x`` (n,) sum to their slope on ``x``."""
    centred = x - x.mean()
    return np.asarray(centred / np.sum(centred**2))


def indicators(values: ArrayLike) -> Array:
    """Returns an indicator column for each distinct value, in rising order: (n, values)."""
    rounded = np.asarray(values, float).round(12)
    return np.asarray((rounded[:, None] == np.unique(rounded)).astype(float))


def contrast(X: Array, y: Array, weights: Array) -> Estimate:
    """Returns ``weights`` (p,) times the least-squares coefficients of ``y`` (n,) on ``X`` (n, p).

    Its interval follows from the residuals by Student's t. Value and interval are NaN where ``X``
    has fewer than p independent columns.
    """
    nan = float("nan")
    n, p = X.shape
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    Z = X / scale
    if n < p or np.linalg.matrix_rank(Z) < p:
        return Estimate(nan, nan, nan, n)
    coefficients, *_ = np.linalg.lstsq(Z, y, rcond=None)
    w = weights / scale
    value = float(w @ coefficients)
    if n == p:
        return Estimate(value, nan, nan, n)
    variance = float(np.sum((y - Z @ coefficients) ** 2)) / (n - p)
    error = float(np.sqrt(variance * (w @ np.linalg.inv(Z.T @ Z) @ w)))
    return Estimate(value, *t_interval(value, error, n - p, LEVEL), n)
