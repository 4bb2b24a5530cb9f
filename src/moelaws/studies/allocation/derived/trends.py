"""Trends of r* and the depth of its valley are each one number with an interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.minimum import Array
from moelaws.fitting.quantiles import t_interval
from moelaws.studies.allocation.derived.cells import MIN_RATIOS, Cell

LEVEL = 0.9


def over_compute(table: pd.DataFrame, column: str = "r_raw") -> Estimate:
    """Returns beta_r common to all sparsities: d ln r*/d ln C with a level for each S.

    Args:
        table: of ``r_star``.
        column: which of its r*.
    """
    rows = table[table[column].notna()]
    ln_C = np.log(rows["C"].to_numpy(float))
    own = _indicators(rows["S"])
    ln_r = np.log(rows[column].to_numpy(float))
    return contrast(np.column_stack([ln_C, own]), ln_r, np.eye(1 + own.shape[1])[0])


def exponent_difference(table: pd.DataFrame) -> Estimate:
    """Returns beta_r at the least sparsity minus beta_r at the largest, a line of raw r* each."""
    own = _indicators(table["S"])
    if own.shape[1] < 2:
        return Estimate(float("nan"), float("nan"), float("nan"), len(table))
    slopes = own * np.log(table["C"].to_numpy(float))[:, None]
    weights = np.zeros(2 * own.shape[1])
    weights[0], weights[own.shape[1] - 1] = 1.0, -1.0
    return contrast(np.column_stack([slopes, own]), np.log(table["r_raw"].to_numpy(float)), weights)


def over_sparsity(table: pd.DataFrame) -> Estimate:
    """Returns d ln r*/d ln(1 - S) of raw r* with a level for each budget.

    Where it is positive, r* rises with the active fraction.
    """
    own = _indicators(table["C"])
    X = np.column_stack([np.log1p(-table["S"].to_numpy(float)), own])
    return contrast(X, np.log(table["r_raw"].to_numpy(float)), np.eye(X.shape[1])[0])


def curvature(cells: Sequence[Cell]) -> Estimate:
    """Returns c of L = a_g + b_g ln r + c ln(r)^2, nats/token.

    Each budget and sparsity g has a level and a slope of its own. A deviation by a factor f from
    the optimum of such a valley costs c ln(f)^2.
    """
    used = [cell for cell in cells if len(cell.r) >= MIN_RATIOS]
    if not used:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    u = np.concatenate([_centred(cell) for cell in used])
    L = np.concatenate([cell.rows["L"].to_numpy(float) for cell in used])
    of = np.repeat(np.arange(len(used)), [len(cell.rows) for cell in used])
    own = (of[:, None] == np.arange(len(used))).astype(float)
    X = np.column_stack([u**2, own, own * u[:, None]])
    return contrast(X, L, np.eye(X.shape[1])[0])


def contrast(X: Array, y: Array, weights: Array) -> Estimate:
    """Returns ``weights`` (p,) times the least-squares coefficients of ``y`` (n,) on ``X`` (n, p).

    The interval is by Student's t of the residuals. All is NaN where ``X`` has fewer than p
    independent columns.
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


def _indicators(values: pd.Series[float]) -> Array:
    """Returns a column for each distinct value, in rising order: (n, values)."""
    rounded = values.to_numpy(float).round(12)
    return np.asarray((rounded[:, None] == np.unique(rounded)).astype(float))


def _centred(cell: Cell) -> Array:
    u = np.log(cell.rows["r"].to_numpy(float))
    return np.asarray(u - u.mean())
