"""Errors of contrasts between losses: of two runs, of two optima, of a leverage.

A contrast is a sum of losses with weights, and what is read off fitted curves is one to first
order: the weights are how it moves with each loss. Two errors stand beside each other. The one of
documents says how another sample of held-out text would move the contrast; all runs share the
text, so it is paired (``records.paired``). The one of seeds says how other seeds would, with the
spread between the study's seeds in each loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.laws.base import FittableLaw
from moelaws.records.paired import PairedLosses


@dataclass(frozen=True)
class ContrastErrors:
    """Errors of contrasts of n runs.

    Attributes:
        paired: their losses by document; None where these are not known.
        seed_sd: standard deviation of a loss between seeds, nats/token; NaN where unknown.
    """

    paired: PairedLosses | None
    seed_sd: float

    def documents(self, weights: ArrayLike) -> Array:
        """Returns the error (...,) by documents of contrasts with ``weights`` (..., n)."""
        w = np.asarray(weights, float)
        return (
            np.full(w.shape[:-1], np.nan) if self.paired is None else self.paired.standard_error(w)
        )

    def seeds(self, weights: ArrayLike) -> Array:
        """Returns the error (...,) by seeds of contrasts with ``weights`` (..., n)."""
        return np.asarray(self.seed_sd * np.linalg.norm(np.asarray(weights, float), axis=-1))


def contrast_errors(inputs: Inputs, run_ids: Iterable[str]) -> ContrastErrors:
    """Returns the errors of contrasts of runs of the study, in the order of ``run_ids``."""
    return ContrastErrors(inputs.paired(list(run_ids)), seed_sd(inputs.completed))


def seed_sd(table: pd.DataFrame) -> float:
    """Returns the standard deviation of L between seeds, pooled over the runs of a study's table.

    Each configuration counts with its seeds less one. NaN where none has a second seed.
    """
    repeated = table[(table["n_seeds"] > 1) & table["L_seed_sd"].notna()]
    # Runs of one configuration share its spread to the last digit, and no others do.
    groups = repeated.drop_duplicates(["C", "n_seeds", "L_seed_sd"])
    freedom = groups["n_seeds"].to_numpy(float) - 1
    if not freedom.sum():
        return math.nan
    return float(
        np.sqrt(np.sum(freedom * groups["L_seed_sd"].to_numpy(float) ** 2) / freedom.sum())
    )


def influence(
    law: FittableLaw, params: Mapping[str, float], fitted: Mapping[str, Any], at: Mapping[str, Any]
) -> Array:
    """Returns how predictions at m points move with the n losses that a law was fitted to, (m, n).

    To first order, and as least squares of the law's residuals have it: with Jacobians J of the
    fitted rows and K of the points, on the scale of the residuals, it is K J^+ and, where that
    scale is logarithmic, times the prediction over the fitted row's. For a linear law it is exact.

    Args:
        law: a law of a loss.
        params: its fitted coefficients, natural scale.
        fitted: the variables of the rows, (n,) each.
        at: those of the points, (m,) each.
    """
    J, y_n = _jacobian(law, params, fitted)
    K, y_m = _jacobian(law, params, at)
    scale = np.linalg.norm(J, axis=0)
    scale[scale == 0] = 1.0
    moves = (K / scale) @ np.linalg.pinv(J / scale)
    return np.asarray(moves * y_m[:, None] / y_n if law.log_response else moves)


def _jacobian(
    law: FittableLaw, params: Mapping[str, float], columns: Mapping[str, Any]
) -> tuple[Array, Array]:
    """Returns the Jacobian (n, P) on the residuals' scale, and the natural predictions (n,)."""
    model = law.model(law.columns(columns))
    prediction, state = model.evaluate(law.vector(params)[None])
    natural = np.exp(prediction[0]) if law.log_response else prediction[0]
    return np.array(model.jacobian(state)[0].T, float), np.asarray(natural)
