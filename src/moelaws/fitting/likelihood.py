"""The Huber likelihood of residuals whose scale sigma is fitted: AIC, BIC and profiles rest on it.

The density of a residual r is exp(-huber(r / sigma, delta)) / (sigma Z). At the usual delta of 1e-3
it is Laplace's but for a tiny round top. Source: Besiroglu et al. 2024, the refit of Chinchilla.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from moelaws.fitting.objective import huber
from moelaws.laws.base import Array


def sigma_huber(residual: Array, delta: float, weights: Array | None = None) -> tuple[float, float]:
    """Returns the least negative log-likelihood of residuals (n,), and the sigma that gives it.

    ``weights`` (n,) multiply each row's loss.
    """
    normaliser = np.sqrt(2 * np.pi) * (2 * norm.cdf(delta) - 1)
    normaliser += 2 / delta * np.exp(-0.5 * delta**2)
    w = np.ones_like(residual) if weights is None else weights

    def nll(ln_sigma: float) -> float:
        losses = w * huber(residual / np.exp(ln_sigma), delta)
        return float(losses.sum() + len(residual) * (ln_sigma + np.log(normaliser)))

    # In the density's Laplace limit the best sigma is delta times the mean absolute residual.
    guess = np.log(max(float((w * np.abs(residual)).mean()), 1e-15) * delta)
    best = minimize_scalar(nll, bounds=(guess - 10, guess + 10), options={"xatol": 1e-10})
    return float(best.fun), float(np.exp(best.x))


def criteria(
    residual: Array, n_params: int, delta: float, weights: Array | None = None
) -> dict[str, float]:
    """Returns AIC and BIC of residuals (n,) of ln of the response, weighted, at the best scale.

    Laws fitted by different objectives so compare; sigma counts as a parameter. The law is not
    refitted for it: the estimates are those of its own objective.
    """
    nll, _ = sigma_huber(residual, delta, weights)
    k = n_params + 1
    return {"aic": 2 * k + 2 * nll, "bic": k * float(np.log(len(residual))) + 2 * nll}
