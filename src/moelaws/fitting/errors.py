"""Errors of predictions, criteria of fits, and the spread of residuals."""

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes a second to import

from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.objective import huber, sigma_huber
from moelaws.laws.base import Array

TAILS = 101  # quantiles of the residuals that a report keeps


def r2(observed: Array, residual: Array) -> float | None:
    """Returns the part of the variance of ``observed`` (n,) that is explained; None without any."""
    if np.ptp(observed) == 0:
        return None
    return 1 - float((residual**2).sum()) / float(((observed - observed.mean()) ** 2).sum())


def errors(observed: Array, predicted: Array, delta: float) -> dict[str, float | None]:
    """Returns the errors of predictions (n,) of a response.

    They are n; r2, rmse, mse and bias (mean of predicted minus observed) in the response's unit;
    huber_sum and huber_mean of the residuals of its logarithm at ``delta``. A number is None where
    it is not defined: r2 of equal observations, a logarithm of a negative number.
    """
    residual = predicted - observed
    mse = float((residual**2).mean())
    n, total = len(observed), None
    if (predicted > 0).all() and (observed > 0).all():
        total = float(huber(np.log(predicted) - np.log(observed), delta).sum())
    return {
        "n": n,
        "r2": r2(observed, residual),
        "rmse": mse**0.5,
        "mse": mse,
        "bias": float(residual.mean()),
        "huber_sum": total,
        "huber_mean": None if total is None else total / n,
    }


def criteria(
    observed: Array, predicted: Array, n_params: int, delta: float, weights: Array | None
) -> dict[str, float | None]:
    """Returns AIC, AICc and BIC by the likelihood of ``sigma_huber``, of ln of a response (n,).

    So laws that were fitted by different objectives compare: none is refitted for it, and sigma
    counts as one of the k parameters. AICc = AIC + 2k(k + 1)/(n - k - 1), since AIC and BIC favour
    laws of many parameters where rows are few (Hurvich and Tsai 1989). All three are None where n
    <= k + 1, or where a response or prediction is not positive.
    """
    n, k = len(observed), n_params + 1
    if n <= k + 1 or not ((predicted > 0).all() and (observed > 0).all()):
        return dict.fromkeys(("aic", "aicc", "bic"))
    nll = sigma_huber(np.log(predicted) - np.log(observed), delta, weights)
    aic = 2 * k + 2 * nll
    corrected = aic + 2 * k * (k + 1) / (n - k - 1)
    return {"aic": aic, "aicc": corrected, "bic": k * float(np.log(n)) + 2 * nll}


def describe(residual: Array, n_params: int, weights: Array | None, squared: bool) -> Residuals:
    """Describes residuals (n,) on the law's scale, observed minus fitted.

    The quantiles are those of a new observation's error. For least squares they are Student's t's;
    else the residuals' own, widened by sqrt(n / (n - P)) because P parameters were fitted to them.
    Weighted residuals are scaled to those of a row of weight 1.
    """
    n = len(residual)
    freedom = n - n_params
    if freedom < 1:
        return Residuals()
    r = residual if weights is None else residual * np.sqrt(weights)
    sd = float(np.sqrt((r**2).sum() / freedom))
    levels = np.linspace(0.005, 0.995, TAILS)
    if squared:
        quantiles = sd * stdtrit(freedom, levels)
    else:
        quantiles = np.quantile(r, levels) * np.sqrt(n / freedom)
    return Residuals(sd, quantiles.tolist())
