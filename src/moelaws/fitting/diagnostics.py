"""How good a fit is: errors, likelihood criteria, and what the rows cannot tell apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from moelaws.fitting.objective import huber
from moelaws.laws.base import Array, Columns, Law
from moelaws.laws.kinds import LinearLaw, PowerLawSum
from moelaws.spec.errors import UserError


def errors(observed: Array, predicted: Array, delta: float) -> dict[str, float | None]:
    """Errors of predictions (n,) of a positive response.

    Returns:
        n; r2, rmse, mse and bias (mean of predicted minus observed), in the response's unit;
        huber_sum and huber_mean of the residuals of its logarithm at ``delta``. None where a
        number is not defined: r2 of equal observations, a logarithm of a negative prediction.
    """
    residual = predicted - observed
    spread = float(((observed - observed.mean()) ** 2).sum())
    mse = float((residual**2).mean())
    losses = huber(_ln_residual(observed, predicted), delta) if (predicted > 0).all() else None
    return {
        "n": len(observed),
        "r2": 1 - float((residual**2).sum()) / spread if spread > 0 else None,
        "rmse": mse**0.5,
        "mse": mse,
        "bias": float(residual.mean()),
        "huber_sum": None if losses is None else float(losses.sum()),
        "huber_mean": None if losses is None else float(losses.mean()),
    }


def criteria(
    observed: Array, predicted: Array, n_params: int, delta: float
) -> dict[str, float | None]:
    """AIC and BIC of the Huber likelihood of ln L at its best scale sigma.

    The density of a residual r is exp(-huber(r / sigma)) / (sigma Z), so that laws fitted by
    different objectives compare; sigma counts as a parameter. It is not refitted together with
    the law: the estimates are those of the law's own objective.
    """
    if not (predicted > 0).all():
        return {"aic": None, "bic": None}
    nll, _ = sigma_huber(_ln_residual(observed, predicted), delta)
    k = n_params + 1
    return {"aic": 2 * k + 2 * nll, "bic": k * float(np.log(len(observed))) + 2 * nll}


def sigma_huber(residual: Array, delta: float) -> tuple[float, float]:
    """Least negative log-likelihood of residuals (n,) under the Huber density, and its sigma."""
    normaliser = np.sqrt(2 * np.pi) * (2 * norm.cdf(delta) - 1)
    normaliser += 2 / delta * np.exp(-0.5 * delta**2)

    def nll(ln_sigma: float) -> float:
        losses = huber(residual / np.exp(ln_sigma), delta)
        return float(losses.sum() + len(residual) * (ln_sigma + np.log(normaliser)))

    # In the density's Laplace limit the best sigma is delta times the mean absolute residual.
    guess = np.log(max(float(np.abs(residual).mean()), 1e-15) * delta)
    best = minimize_scalar(nll, bounds=(guess - 10, guess + 10), options={"xatol": 1e-10})
    return float(best.fun), float(np.exp(best.x))


def require_identifiable(law: Law, columns: Columns, label: str) -> None:
    """Refuse rows that cannot tell some parameters apart, whatever the losses.

    Raises:
        UserError: naming the variables that do not vary and the parameters that hang on them.
    """
    constant = [f"{name} = {x[0]:.6g}" for name, x in columns.items() if np.ptp(x) == 0]
    if isinstance(law, PowerLawSum):
        pairs = law.confounded(columns)
        what = ", ".join(f"{exponent} from {coefficient}" for exponent, coefficient in pairs)
    elif isinstance(law, LinearLaw):
        what = ", ".join(_dependent(law, columns))
    else:
        raise TypeError(f"law {law.id} is of no kind that is fitted")
    if what:
        why = f"all have {' and '.join(constant)}" if constant else "they vary too little"
        raise UserError(
            f"{label}: the {len(next(iter(columns.values())))} rows cannot tell {what} apart in "
            f"{law.id}: {why}; add rows that vary"
        )


def _dependent(law: LinearLaw, columns: Columns) -> list[str]:
    """Parameters whose design columns are linearly dependent on these rows."""
    X = law.design(columns)
    X = X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny)
    _, s, vectors = np.linalg.svd(X, full_matrices=False)
    null = vectors[s < 1e-10 * s[0]]
    involved = (np.abs(null) > 1e-6).any(axis=0) if len(null) else np.zeros(X.shape[1], bool)
    return [name for name, is_in in zip(law.names, involved, strict=True) if is_in]


def vanishing(
    law: PowerLawSum, params: Mapping[str, float], columns: Columns, share: float = 1e-4
) -> list[str]:
    """Coefficients of the terms that are below ``share`` of the prediction in every row."""
    shares = law.design(columns).evaluate(law.vector(params)[None])[1][0]
    return [
        t.coefficient for t, top in zip(law.terms, shares.max(axis=1), strict=True) if top < share
    ]


def _ln_residual(observed: Array, predicted: Array) -> Array:
    return np.asarray(np.log(predicted) - np.log(observed))
