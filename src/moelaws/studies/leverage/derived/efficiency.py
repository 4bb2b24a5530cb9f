"""Efficiency leverage of fitted loss curves with intervals (leverage paper, Algorithm 1)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import contrast_errors
from moelaws.analysis.inputs import Inputs
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


def leverage_errors(
    inputs: Inputs, dense: Curve, runs: pd.DataFrame, moves: Array, C_dense: Array
) -> dict[str, Array]:
    """Returns errors of ln EL at n points: by documents, paired, and by the spread of seeds.

    ln EL moves by what the looked-up loss moves less what the dense curve moves at ``C_dense``,
    over the curve's slope in ln C there.

    Args:
        runs: behind the losses that are looked up on the dense curve.
        moves: how those losses move with the losses of ``runs``, (n, runs).
        C_dense: where the dense curve has them, (n,), FLOP; NaN where nowhere.
    """
    ids = [*runs["run_id"], *dense.rows["run_id"]]
    places = {run_id: place for place, run_id in enumerate(dict.fromkeys(ids))}
    reached = np.isfinite(C_dense)
    at = np.where(reached, C_dense, 1.0)
    weights = np.zeros((len(at), len(places)))
    for run_id, column in zip(ids, np.hstack([moves, -dense.influence(at)]).T, strict=True):
        weights[:, places[run_id]] += column
    weights = np.where(reached[:, None], weights / dense.slope(at)[:, None], np.nan)
    errors = contrast_errors(inputs, places)
    return {
        "ln_EL_paired_se": errors.documents(weights),
        "ln_EL_seed_se": errors.seeds(weights),
    }


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
