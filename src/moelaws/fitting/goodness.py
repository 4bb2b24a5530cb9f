"""How good a fit is: its errors, its likelihood and the distribution of its residuals.

AIC, BIC and profiles rest on the Huber likelihood of residuals whose scale sigma is fitted. The
density of a residual r is exp(-huber(r / sigma, delta)) / (sigma Z). At the usual delta of 1e-3 it
is Laplace's but for a tiny round top. Source: Besiroglu et al. 2024, the refit of Chinchilla.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import jarque_bera, kurtosis, norm, skew
from scipy.stats import t as student_t

from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.objective import huber
from moelaws.laws.base import Array


def errors(observed: Array, predicted: Array, delta: float) -> dict[str, float | None]:
    """Returns the errors of predictions (n,) of a response.

    Returns:
        n; r2, rmse, mse and bias (mean of predicted minus observed), in the response's unit;
        huber_sum and huber_mean of the residuals of its logarithm at ``delta``. None where a
        number is not defined: r2 of equal observations, a logarithm of a negative number.
    """
    residual = predicted - observed
    spread = float(((observed - observed.mean()) ** 2).sum())
    mse = float((residual**2).mean())
    positive = (predicted > 0).all() and (observed > 0).all()
    losses = huber(np.log(predicted) - np.log(observed), delta) if positive else None
    return {
        "n": len(observed),
        "r2": 1 - float((residual**2).sum()) / spread if np.ptp(observed) > 0 else None,
        "rmse": mse**0.5,
        "mse": mse,
        "bias": float(residual.mean()),
        "huber_sum": None if losses is None else float(losses.sum()),
        "huber_mean": None if losses is None else float(losses.mean()),
    }


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
    observed: Array, predicted: Array, n_params: int, delta: float, weights: Array | None = None
) -> dict[str, float | None]:
    """Returns AIC and BIC of ln of a response (n,), weighted, at the best scale; None if not > 0.

    Laws fitted by different objectives so compare; sigma counts as a parameter. The law is not
    refitted for it: the estimates are those of its own objective.
    """
    if not ((predicted > 0).all() and (observed > 0).all()):
        return {"aic": None, "bic": None}
    nll, _ = sigma_huber(np.log(predicted) - np.log(observed), delta, weights)
    k = n_params + 1
    return {"aic": 2 * k + 2 * nll, "bic": k * float(np.log(len(observed))) + 2 * nll}


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
