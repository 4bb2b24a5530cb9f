"""Efficiency leverage of fitted loss curves, with intervals (leverage paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.laws.leverage.curve import LAW, efficiency_leverage
from moelaws.spec.errors import UserError


def leverage_points(
    C_moe: ArrayLike,
    dense: Mapping[str, float],
    moe: Mapping[str, float],
    dense_draws: pd.DataFrame,
    moe_draws: pd.DataFrame,
    level: float = 0.9,
) -> pd.DataFrame:
    """A row for each compute ``C_moe`` (n,), FLOP: the leverage of two fits of ``leverage.curve``.

    Args:
        C_moe: compute of the mixture of experts.
        dense: alpha, beta and b of the dense curve.
        moe: the same of the mixture of experts.
        dense_draws: bootstrap draws of ``dense``: a row a draw, columns alpha, beta and b.
        moe_draws: the same of ``moe``; the two are independent, and row is paired with row.
        level: coverage of the intervals.

    Returns:
        Columns C; L_star (nats/token), C_dense (FLOP) and EL, the last two NaN where the dense
        curve never comes down to L_star; EL_low and EL_high; level; unreached, the share of draws
        in which the dense curve never does. Such a draw counts as a leverage above every other,
        for leaving it out would pull the interval down: where too many are, EL_high is infinite.

    Raises:
        UserError: for a missing parameter or column, no draws, a level outside (0, 1), or a
            compute that is not above 0.
    """
    C = np.atleast_1d(np.asarray(C_moe, float))
    if not (np.isfinite(C) & (C > 0)).all():
        raise UserError("efficiency leverage: every compute must be a finite number above 0")
    if not 0 < level < 1:
        raise UserError(f"efficiency leverage: level is {level}; it must lie between 0 and 1")
    _check(dense, moe, dense_draws, moe_draws)
    n_draws = min(len(dense_draws), len(moe_draws))
    best = efficiency_leverage(dense, moe, C)
    drawn = efficiency_leverage(_columns(dense_draws, n_draws), _columns(moe_draws, n_draws), C)
    unreached = np.isnan(drawn.EL)
    # The interval's ends are draws themselves: nothing lies between a number and infinity.
    EL = np.sort(np.where(unreached, np.inf, drawn.EL), axis=0)  # (draws, n)
    tail = int((n_draws - 1) * (1 - level) / 2 + 1e-9)
    return pd.DataFrame(
        {
            "C": C,
            "L_star": best.L,
            "C_dense": best.C_dense,
            "EL": best.EL,
            "EL_low": EL[tail],
            "EL_high": EL[n_draws - 1 - tail],
            "level": level,
            "unreached": unreached.mean(axis=0),
        }
    )


def _columns(draws: pd.DataFrame, n: int) -> dict[str, np.ndarray]:
    return {name: draws[name].to_numpy(float)[:n, None] for name in LAW.names}


def _check(
    dense: Mapping[str, float],
    moe: Mapping[str, float],
    dense_draws: pd.DataFrame,
    moe_draws: pd.DataFrame,
) -> None:
    parts = {
        "dense": dense,
        "moe": moe,
        "dense_draws": dense_draws.columns,
        "moe_draws": moe_draws.columns,
    }
    for part, names in parts.items():
        missing = [name for name in LAW.names if name not in names]
        if missing:
            raise UserError(
                f"efficiency leverage: {part} lacks {', '.join(missing)}; a fit of {LAW.id} has "
                f"{', '.join(LAW.names)}"
            )
    if not len(dense_draws) or not len(moe_draws):
        raise UserError("efficiency leverage: no bootstrap draws; fit both curves with a bootstrap")
