"""Which form of a linear law predicts best the rows that it has not seen (sparsity paper, App B).

Of every group of rows, such as a compute budget, a random 80 % is fitted and the rest predicted.
This is done 100 times, and one form is chosen for all groups.

Arrays: k resamples, n rows of a group, P parameters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moelaws.fitting.objective import Index
from moelaws.laws.base import Array
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError

RESAMPLES = 100  # of every group
LEAST_WEIGHT = 0.01  # of a form that is averaged with others
FITTED_FRACTION = 0.8  # of a group's rows, in a resample

# The least ratio of the smallest to the largest singular value of standardised columns at which
# their rows identify the parameters. The powers of ln N are nearly collinear, and reach 1e-6.
_RANK = 1e-10

Group = tuple[Mapping[str, ArrayLike], ArrayLike]  # a law's columns and the response, natural unit


@dataclass(frozen=True)
class Candidate:
    """How well one form predicts, on the scale that the law is fitted on.

    Resamples share rows, so that the standard error of ``mse`` is
    sd sqrt(1/k + held-out rows/fitted rows) rather than sd/sqrt(k) (Nadeau & Bengio 2003).
    """

    name: str  # of the form among the candidates
    n_params: int
    mse: float  # over held-out rows of all groups, averaged over resamples
    standard_error: float
    pearson: float  # of held-out rows within each group, averaged; NaN for a constant response


@dataclass(frozen=True)
class Selection:
    """Candidates, best first, and the two choices among them."""

    ranked: tuple[Candidate, ...]
    weights: Mapping[str, float]  # of forms that the rows allow (``akaike_weights``), best first
    # The one of fewest parameters, and of these of least error, within a standard error of the best
    simplest: Candidate
    unidentified: tuple[str, ...]  # forms that some resample does not determine

    @property
    def best(self) -> Candidate:
        return self.ranked[0]


def select(
    candidates: Mapping[str, LinearLaw], groups: Sequence[Group], seed: int = 0, k: int = RESAMPLES
) -> Selection:
    """Cross-validates ``candidates`` over the same ``k`` random resamples of every group.

    The candidates are forms of one law by name, such as ``laws.variants("sparsity.isoflop")``. A
    UserError refuses a group of fewer than two rows, and rows that determine no candidate.
    """
    rng = np.random.default_rng(seed)
    splits = [_splits(np.size(response), rng, k) for _, response in groups]
    n_held = sum(held.shape[1] for _, held in splits)
    n_fitted = sum(fitted.shape[1] for fitted, _ in splits)
    ranked = []
    unidentified = []
    for name, law in candidates.items():
        held_out = [_held_out(law, own, *split) for own, split in zip(groups, splits, strict=True)]
        errors = [pair for pair in held_out if pair is not None]
        if len(errors) < len(groups):
            unidentified.append(name)
            continue
        mse_k = sum(((p - y) ** 2).sum(axis=1) for p, y in errors) / n_held
        spread = float(np.std(mse_k, ddof=1))
        standard_error = spread * math.sqrt(1 / k + n_held / n_fitted)
        with np.errstate(divide="ignore", invalid="ignore"):  # a response may be constant
            r = [np.corrcoef(p.ravel(), y.ravel())[0, 1] for p, y in errors]
        pearson = float(np.mean(r))
        mse = float(np.mean(mse_k))
        ranked.append(Candidate(name, len(law.parameters), mse, standard_error, pearson))
    if not ranked:
        rows = ", ".join(str(np.size(response)) for _, response in groups)
        raise UserError(
            f"no form of the law can be chosen: {FITTED_FRACTION:.0%} of the rows ({rows} in each "
            "group) do not determine any; more sizes or sparsities at each budget are needed"
        )
    ranked.sort(key=lambda c: (c.mse, c.n_params))
    within = [c for c in ranked if c.mse <= ranked[0].mse + ranked[0].standard_error]
    simplest = min(within, key=lambda c: (c.n_params, c.mse))
    known = {c.name: candidates[c.name] for c in ranked}
    return Selection(tuple(ranked), akaike_weights(known, groups), simplest, tuple(unidentified))


def akaike_weights(
    candidates: Mapping[str, LinearLaw], groups: Sequence[Group]
) -> dict[str, float]:
    """Returns the weights of ``candidates`` by AICc over all groups, which sum to 1.

    A form weighs exp(-d/2), where d is its AICc less the least one. Those of less than
    ``LEAST_WEIGHT`` are left out. Source: Burnham and Anderson 2002, sec 2.9.
    """
    aicc = np.zeros(len(candidates))
    for i, law in enumerate(candidates.values()):
        k = len(law.parameters) + 1  # the spread of the errors is estimated, too
        for columns, response in groups:
            X, y = _standardised(law.design(law.columns(columns))), law.on_scale(response)
            n = len(y)
            error = np.std(y - X @ np.linalg.lstsq(X, y, rcond=None)[0])
            rounding = np.finfo(float).eps * np.abs(y).max()
            aicc[i] += 2 * n * np.log(np.hypot(error, rounding))
            aicc[i] += 2 * k * n / (n - k - 1) if n > k + 1 else np.inf
    if not np.isfinite(aicc).any():
        return {next(iter(candidates)): 1.0}
    weights = np.exp((np.min(aicc) - aicc) / 2)
    weights[weights < LEAST_WEIGHT * weights.sum()] = 0
    shares = zip((weights / weights.sum()).tolist(), candidates, strict=True)
    return {name: share for share, name in sorted(shares, reverse=True) if share}


def held_out(law: LinearLaw, group: Group) -> tuple[Index, Array] | None:
    """Returns the rows of ``group`` that each resample holds out, and their predictions.

    The resamples are those of ``select`` for a group alone, with its default seed. Both are (k, .),
    on the scale that the law is fitted on. None where a resample does not determine the law.
    """
    fitted, held = _splits(np.size(group[1]), np.random.default_rng(0), RESAMPLES)
    predictions = _held_out(law, group, fitted, held)
    return None if predictions is None else (held, predictions[0])


def _splits(n: int, rng: np.random.Generator, k: int) -> tuple[Index, Index]:
    """Returns the rows that each resample fits, (k, .), and those that it holds out, (k, .)."""
    if n < 2:
        raise UserError(f"a group has {n} rows: at least 2 are needed to hold one out")
    order = rng.random((k, n)).argsort(axis=1)
    fitted = min(max(round(FITTED_FRACTION * n), 1), n - 1)
    return order[:, :fitted], order[:, fitted:]


def _held_out(
    law: LinearLaw, group: Group, fitted: Index, held: Index
) -> tuple[Array, Array] | None:
    """Returns predictions and responses (k, .) of held-out rows, on the law's own scale.

    None where a resample does not identify the parameters.
    """
    columns, response = group
    X, y = _standardised(law.design(law.columns(columns))), law.on_scale(response)
    if fitted.shape[1] < X.shape[1]:
        return None
    Q, R = np.linalg.qr(X[fitted])
    s = np.linalg.svd(R, compute_uv=False)
    if not (s[:, -1] > _RANK * s[:, 0]).all():
        return None
    w = np.linalg.solve(R, np.matmul(Q.transpose(0, 2, 1), y[fitted][:, :, None]))
    return np.matmul(X[held], w)[..., 0], y[held]


def _standardised(X: Array) -> Array:
    """Returns columns of the same span, of unit size, and centred if one of them is constant."""
    constant = (np.ptp(X, axis=0) == 0) & (X[0] != 0)
    if constant.any():
        X = np.where(constant, X, X - X.mean(axis=0))
    scale = np.sqrt((X**2).mean(axis=0))
    return X / np.where(scale > 0, scale, 1.0)
