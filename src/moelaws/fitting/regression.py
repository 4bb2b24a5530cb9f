"""Ordinary least squares, with draws from the Student-t distribution of the estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moelaws.laws.base import Array


@dataclass(frozen=True)
class Regression:
    """Coefficients (P,) and draws (B, P) of them; no draws where no degree of freedom is left."""

    coefficients: Array
    draws: Array


def least_squares(
    X: Array, y: Array, *, draws: int = 1000, seed: int = 0, absorbed: int = 0
) -> Regression:
    """Regresses ``y`` (n,) on ``X`` (n, P), whose columns must be independent.

    The draws are exact for independent normal errors of equal spread: multivariate Student t with
    n - P - ``absorbed`` degrees of freedom around the coefficients.

    Args:
        draws: how many.
        seed: of the draws.
        absorbed: means, such as those of groups, that were taken off X and y before.
    """
    n, P = X.shape
    coefficients = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], float)
    freedom = n - P - absorbed
    if freedom < 1:
        return Regression(coefficients, np.empty((0, P)))
    scale = float(np.sqrt(np.sum((y - X @ coefficients) ** 2) / freedom))
    root = np.linalg.inv(np.linalg.qr(X).R)
    return Regression(coefficients, coefficients + student_t(root, freedom, draws, seed, scale))


def student_t(root: Array, freedom: int, draws: int, seed: int, scale: float = 1.0) -> Array:
    """Returns draws (draws, P) of the centred multivariate Student t.

    Its shape matrix is ``scale``^2 ``root`` ``root``', with a ``root`` (P, P).
    """
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((draws, len(root))) @ root.T
    return np.asarray(scale * normal / np.sqrt(rng.chisquare(freedom, (draws, 1)) / freedom))
