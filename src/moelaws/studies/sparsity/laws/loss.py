"""Loss from size, data and sparsity (sparsity paper, Eq 6), and its optima at a fixed compute.

The optima use the paper's compute of a run, C = 6 N_a D with N_a = (1 - S) N.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array
from moelaws.laws.declared import law_beside
from moelaws.laws.roots import bisect, rising_root

_LARGEST_LN_N = np.log(1e30)  # optima are searched among sizes from 1 to 1e30 parameters

LAW, VARIANTS = law_beside(__file__)


@dataclass(frozen=True)
class Optimum:
    """The best size at a given sparsity and compute."""

    N: Array  # total parameters
    N_active: Array  # (1 - S) N
    L: Array  # nats/token


def optimal_sparsity(params: Mapping[str, float], N: ArrayLike, C: ArrayLike) -> Array:
    """Returns the S* that minimises Eq 6 at total size ``N`` and compute ``C`` = 6 (1-S) N D.

    ``N`` (parameters) and ``C`` (FLOPs) broadcast. S* is 0 where dense is best, and NaN where the
    loss falls all the way to S = 1 - 1e-6, so that there is no optimum. Source: sparsity, sec 3.
    """
    N, C = np.broadcast_arrays(np.asarray(N, float), np.asarray(C, float))
    p = params

    def slope(x: Array) -> Array:  # dL / d ln x at x = 1 - S
        data = p["beta"] * p["b"] * (6 * x * N / C) ** p["beta"]
        own = p["lambda"] * p["c"] * x ** -p["lambda"]
        joint = p["delta"] * p["d"] * x ** -p["delta"] * N ** -p["gamma"]
        return np.asarray(data - own - joint)

    # Fitted coefficients may give several stationary points; the lowest of a fine grid is refined.
    ln_x = np.linspace(np.log(1e-6), 0.0, 1401)
    x_K = np.exp(ln_x).reshape(-1, *[1] * N.ndim)
    loss = LAW.predict(params, {"N": N, "D": C / (6 * x_K * N), "S": 1 - x_K})
    best = np.argmin(loss, axis=0)
    low, high = ln_x[np.maximum(best - 1, 0)], ln_x[np.minimum(best + 1, len(ln_x) - 1)]
    x = np.exp(bisect(lambda t: slope(np.exp(t)), low, high))
    x = np.where((best == len(ln_x) - 1) & (slope(np.ones_like(N)) <= 0), 1.0, x)
    return np.where(best == 0, np.nan, 1 - x)


def optimal_size(params: Mapping[str, float], S: ArrayLike, C: ArrayLike) -> Optimum:
    """Returns N*, N_a* and L* of Eq 6 at sparsity ``S`` and compute ``C`` (FLOPs); broadcasts.

    They are NaN where the loss has no minimum between 1 and 1e30 parameters. Source: sparsity,
    sec 3.
    """
    S, C = np.broadcast_arrays(np.asarray(S, float), np.asarray(C, float))
    p, x = params, 1 - S

    def slope(ln_N: Array) -> Array:  # dL / d ln N
        data = p["beta"] * p["b"] * (6 * x / C) ** p["beta"] * np.exp(p["beta"] * ln_N)
        size = p["alpha"] * p["a"] * np.exp(-p["alpha"] * ln_N)
        joint = p["gamma"] * p["d"] * x ** -p["delta"] * np.exp(-p["gamma"] * ln_N)
        return np.asarray(data - size - joint)

    N = np.exp(rising_root(slope, np.zeros(S.shape), _LARGEST_LN_N))
    return Optimum(N, x * N, LAW.predict(params, {"N": N, "D": C / (6 * x * N), "S": S}))


def implied_rows(huber_sum: ArrayLike, mse: ArrayLike, delta: float = 1e-3) -> Array:
    """Returns how many rows a sum of Huber losses and a mean squared error of one sample imply.

    It is ``huber_sum`` / (delta (sd sqrt(2/pi) - delta/2)) with sd = sqrt(``mse``), for Gaussian
    residuals of mean 0 that nearly all exceed ``delta``. The exact integral gives fewer rows by a
    fraction of (delta/sd)^2 / 6: 195.79 for 195.85 in the paper's fit. All are on the scale of the
    residuals. NaN where sd is too small for that. Source: erratum E2.3 (sparsity, App F).
    """
    mean = delta * (np.sqrt(np.asarray(mse, float)) * np.sqrt(2 / np.pi) - delta / 2)
    return np.asarray(huber_sum, float) / np.where(mean > 0, mean, np.nan)
