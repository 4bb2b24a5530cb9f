"""Linear least squares of a LinearLaw: a direct solution, no starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moelaws.laws.base import Array


@dataclass(frozen=True)
class Solution:
    """Coefficients on the law's own scale, the sum of squares, the standardised condition."""

    theta: Array  # (P,)
    objective: float
    condition: float  # of the Hessian of the standardised columns
    full_rank: bool


def least_squares(X: Array, y: Array) -> Solution:
    """Ordinary least squares of ``y`` (n,) on ``X`` (n, P).

    Columns are centred (where a constant column takes the means up) and scaled to unit spread:
    powers of ln N are nearly collinear as they stand.
    """
    constant = np.flatnonzero((np.ptp(X, axis=0) == 0) & (X[0] != 0))
    centre = X.mean(axis=0) if len(constant) == 1 else np.zeros(X.shape[1])
    centre[constant] = 0.0
    scale = np.sqrt(((X - centre) ** 2).mean(axis=0))
    scale[scale == 0] = 1.0
    Z = (X - centre) / scale
    w, _, rank, s = np.linalg.lstsq(Z, y, rcond=1e-12)
    theta = w / scale
    if len(constant) == 1:
        theta[constant] -= (theta @ centre) / X[0, constant]
    residual = y - Z @ w
    condition = float(s[0] / s[-1]) ** 2 if s[-1] > 0 else float("inf")
    return Solution(theta, float(residual @ residual), condition, bool(rank == X.shape[1]))


def cross_validation(X: Array, y: Array, folds: int = 10, seed: int = 0) -> float:
    """Mean squared error of rows predicted by fits to the other folds' rows; NaN where a fold's
    rest cannot tell the parameters apart. It chooses between forms of a law, such as the degrees
    of the isoFLOP surface (sparsity, App B).
    """
    order = np.random.default_rng(seed).permutation(len(y))
    total = 0.0
    for held in np.array_split(order, folds):
        rest = np.setdiff1d(order, held)
        solution = least_squares(X[rest], y[rest])
        if not solution.full_rank:
            return float("nan")
        total += float(((X[held] @ solution.theta - y[held]) ** 2).sum())
    return total / len(y)
