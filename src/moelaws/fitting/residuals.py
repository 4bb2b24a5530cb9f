"""How a fit's residuals are distributed: are they normal, and how far do new losses scatter."""

from __future__ import annotations

import numpy as np
from scipy.stats import jarque_bera, kurtosis, skew
from scipy.stats import t as student_t

from moelaws.fitting.diagnostics import Residuals
from moelaws.laws.base import Array

TAILS = 101  # quantiles kept of the residuals


def describe(residual: Array, n_params: int, weights: Array | None, squared: bool) -> Residuals:
    """Describes residuals (n,) on the law's scale, observed minus fitted.

    The quantiles are those of a new observation's error: of Student's t for least squares; else of
    the residuals themselves, widened by sqrt(n / (n - P)) for the parameters that were fitted to
    them. With weights, residuals are those of a row of weight 1.
    """
    n = len(residual)
    r = residual if weights is None else residual * np.sqrt(weights)
    freedom = n - n_params
    sd = float(np.sqrt((r**2).sum() / freedom)) if freedom > 0 else None
    enough = n >= 8 and np.ptp(r) > 0
    levels = np.linspace(0.005, 0.995, TAILS)
    if sd is None:
        quantiles = None
    elif squared:
        quantiles = (sd * student_t.ppf(levels, freedom)).tolist()
    else:
        quantiles = (np.quantile(r, levels) * np.sqrt(n / freedom)).tolist()
    return Residuals(
        sd=sd,
        skew=float(skew(r)) if enough else None,
        excess_kurtosis=float(kurtosis(r)) if enough else None,
        normal_p=float(jarque_bera(r).pvalue) if enough else None,
        quantiles=quantiles,
    )
