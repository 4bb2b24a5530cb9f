"""Errors of contrasts between losses: of two runs, of two optima, of a leverage.

A contrast is a weighted sum of losses. A number that is read off fitted curves is one to first
order: its weights are how far it moves with each loss. A contrast has two errors. The error by
documents is that of another sample of held-out text; it is paired (``records.paired``), since all
runs share the text. The error by seeds is that of other seeds, from the spread of each loss between
the study's seeds. How much of it the runs of a trunk have in common is not known, so it is the
larger of two: each run errs alone, or the runs of a trunk err as one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.fitting.descent import EXACT, inverse
from moelaws.fitting.objective import Objective
from moelaws.laws.base import FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.records.paired import PairedLosses

REPEATS = 5  # runs of further seeds that determine a budget's own spread, to about a third
BY_SEEDS = "by the spread between seeds in the budget, or in all with fewer than five repeats in it"


@dataclass(frozen=True)
class ContrastErrors:
    """Errors of contrasts of n runs, of which one may stand twice."""

    sd: Array  # (n,) of each loss between seeds, nats/token; NaN where unknown
    runs: Sequence[str]  # (n,) ids
    trunks: Sequence[str]  # (n,) what they share
    freedom: float  # degrees of freedom of the spread, of trunks and not of runs
    paired: PairedLosses | None = None  # the losses by document, where they are known

    def seeds(self, weights: ArrayLike) -> Array:
        """Returns the error (...,) by seeds of contrasts with ``weights`` (..., n)."""
        moves = np.asarray(weights, float) * self.sd
        same = [pd.get_dummies(pd.Series(x)).to_numpy(float) for x in (self.runs, self.trunks)]
        alone, together = (np.linalg.norm(moves @ one, axis=-1) for one in same)
        return np.asarray(np.maximum(alone, together))

    def documents(self, weights: ArrayLike) -> Array:
        """Returns the error (...,) by documents of contrasts with ``weights`` (..., n)."""
        if self.paired is None:
            return np.full(np.shape(weights)[:-1], np.nan)
        return self.paired.standard_error(weights)


def contrast_errors(inputs: Inputs, run_ids: Iterable[str]) -> ContrastErrors:
    """Returns the errors of contrasts of the study's runs ``run_ids``, in their order."""
    ids = list(run_ids)
    return replace(seed_errors(inputs, ids), paired=inputs.paired(ids))


def seed_errors(inputs: Inputs, run_ids: Sequence[str]) -> ContrastErrors:
    """Returns the same errors by seeds alone, for which no run's losses by document are read.

    The spread between seeds is that of the run's budget, since larger models vary less, or that of
    all budgets where fewer than ``REPEATS`` runs of the budget repeat another with a further seed.
    """
    table = inputs.completed
    pooled = {C: seed_sd(rows, REPEATS) for C, rows in table.groupby("C")}
    rows = table.set_index("run_id").reindex(list(run_ids))
    sd = np.asarray(rows["C"].map(pooled).fillna(seed_sd(table)), float)
    trunks = table.loc[table["n_seeds"] > 1].drop_duplicates("trunk")
    freedom = float((1 - 1 / trunks["n_seeds"]).sum())
    return ContrastErrors(sd, run_ids, rows["trunk"].tolist(), freedom)


def seed_sd(table: pd.DataFrame, least: int = 1) -> float:
    """Returns the standard deviation of L between seeds, pooled over the runs of a study's table.

    The weight of a configuration is its number of seeds less one. NaN where the sum of these is
    below ``least``.
    """
    repeated = table[(table["n_seeds"] > 1) & table["L_seed_sd"].notna()]
    # Only runs of one configuration have the same spread to the last digit.
    groups = repeated.drop_duplicates(["C", "n_seeds", "L_seed_sd"])
    freedom = groups["n_seeds"].to_numpy(float) - 1
    if freedom.sum() < least:
        return math.nan
    squares = freedom * groups["L_seed_sd"].to_numpy(float) ** 2
    return float(np.sqrt(np.sum(squares) / freedom.sum()))


def linear_influence(law: LinearLaw, fitted: Mapping[str, Any], at: Mapping[str, Any]) -> Array:
    """Returns the derivatives (m, n) of least-squares predictions by the fitted losses.

    With the designs X of the n ``fitted`` rows and Z of the m points ``at``, it is Z X^+ exactly,
    whatever the losses.
    """
    X, Z = (law.design(law.columns(columns)) for columns in (fitted, at))
    scale = np.linalg.norm(X, axis=0)
    scale[scale == 0] = 1.0
    return np.asarray((Z / scale) @ np.linalg.pinv(X / scale))


@dataclass(frozen=True)
class Minimum:
    """The minimum of a fit's objective, and what its derivatives follow from."""

    params: Mapping[str, float]  # the estimates, natural scale
    columns: Mapping[str, Any]  # the law's variables, (n,) each
    losses: Array  # (n,) that the law was fitted to
    # Threshold of the Huber losses; infinite for least squares, NaN for other objectives, whose
    # minimum has no derivative here
    delta: float = math.inf
    at_bounds: Sequence[str] = ()  # parameters that a bound holds


def influence(law: FittableLaw, fitted: Minimum, at: Mapping[str, Any]) -> Array:
    """Returns the derivatives (m, n) of predictions at the points ``at`` by the n fitted losses.

    With Jacobians J of the fitted rows and K of the m points, both (P, .), the objective's exact
    Hessian H, and psi' = 1 for rows within ``delta`` of their loss and 0 for others, it is
    K' H^-1 J psi'. Where there are more rows than parameters, it holds for changes of ln L that are
    small beside ``delta``, since larger ones bring other rows within it. NaN if ``delta`` is NaN.
    """
    n, m = len(fitted.losses), len(next(iter(at.values())))
    if math.isnan(fitted.delta):
        return np.full((m, n), np.nan)
    theta = law.vector(fitted.params)[None]
    model, points = (law.model(law.columns(columns)) for columns in (fitted.columns, at))
    objective = Objective(model, law.on_scale(fitted.losses), fitted.delta)
    point = objective.evaluate(theta)
    values, state = points.evaluate(theta)
    free = [name not in fitted.at_bounds for name in law.names]
    J, K = (model.jacobian(point.state)[0][free], points.jacobian(state)[0][free])
    H = objective.derivatives(point, EXACT).curvature[0][np.ix_(free, free)]
    slopes = K.T @ inverse(H) @ (J * (np.abs(point.residual[0]) <= fitted.delta))
    if law.log_response:
        slopes = slopes * np.exp(values[0])[:, None] / fitted.losses
    return np.asarray(slopes)
