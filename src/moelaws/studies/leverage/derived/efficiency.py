"""Efficiency leverage of fitted loss curves with intervals (leverage paper, Algorithm 1)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.minimum import Array
from moelaws.spec.errors import UserError
from moelaws.studies.leverage.derived.curves import Curve
from moelaws.studies.leverage.laws.curve import efficiency_leverage


def leverage_points(dense: Curve, moe: Curve, C: Array) -> pd.DataFrame:
    """Returns a row for each compute ``C`` (n,), FLOP, of the mixture of experts ``moe``.

    Columns are C; L_star (nats/token), C_dense (FLOP) and EL, the last two NaN where the dense
    curve never comes down to L_star; EL_low and EL_high; level, the dense curve's; unreached, the
    share of draws in which the dense curve never comes down.

    Raises:
        UserError: where one of the curves has no draws.
    """
    EL = leverage_draws(dense, moe, C)
    if not len(EL):
        raise UserError("efficiency leverage: no bootstrap draws; fit both curves with a bootstrap")
    best = efficiency_leverage(dense.params, moe.params, C)
    low, high = open_interval(EL, dense.level)
    return pd.DataFrame(
        {
            "C": C,
            "L_star": best.L,
            "C_dense": best.C_dense,
            "EL": best.EL,
            "EL_low": low,
            "EL_high": high,
            "level": dense.level,
            "unreached": np.isnan(EL).mean(axis=0),
        }
    )


def leverage_draws(dense: Curve, moe: Curve, C: Array) -> Array:
    """Returns the leverage (draws, n) at the mixture's compute ``C`` (n,), draw by draw.

    The fits are independent, so the first draws of both are paired, as many as both have. NaN
    where the dense curve never comes down to the mixture's loss.
    """
    n = min(len(dense.draws), len(moe.draws))
    return efficiency_leverage(dense.drawn_params(n), moe.drawn_params(n), C).EL


def open_interval(EL: Array, level: float) -> tuple[Array, Array]:
    """Returns the ends (n,) of the interval of leverages ``EL`` (draws, n).

    A draw without a leverage (NaN) counts as one above every other, for leaving it out would pull
    the interval down: where too many are, the upper end is infinite.
    """
    ordered = np.sort(np.where(np.isnan(EL), np.inf, EL), axis=0)
    # The ends are draws themselves: nothing lies between a number and infinity.
    tail = int((len(ordered) - 1) * (1 - level) / 2 + 1e-9)
    return ordered[tail], ordered[len(ordered) - 1 - tail]
