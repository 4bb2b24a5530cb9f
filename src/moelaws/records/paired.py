"""Differences of runs' losses on the same held-out documents, with paired errors.

A document that is hard for one run is hard for all. The standard error of one loss contains that
difficulty, but the difference of two losses contains hardly any of it. So contrasts of runs have
their own error, paired by document. With x_rd nats of run r on the t_d tokens of document d, and
T = sum_d t_d, the loss is L_r = sum_d x_rd / T. The m documents are the clusters, and
e_rd = x_rd - t_d L_r are the residuals of a mean weighted by tokens. The covariance of the losses
is

    V_rs = m / (m - 1) * sum_d e_rd e_sd / T^2,

whose diagonal is the squared error of each loss alone (the sandwich of Liang & Zeger 1986,
"Longitudinal data analysis using generalized linear models"), and a contrast sum_r w_r L_r has the
variance w' V w. For two runs this is the paired, clustered error of Miller 2024, "Adding Error Bars
to Evals" (arXiv 2411.00640). It says how much another sample of documents would change the
contrast, but not how much another seed would.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moelaws.files.layout import DOCUMENTS, Results
from moelaws.files.parquet import read_parquet
from moelaws.spec.errors import UserError

Array = NDArray[np.float64]


class UnpairedError(UserError):
    """The losses of these runs cannot be paired, for the reason in the text."""


@dataclass(frozen=True, eq=False)
class PairedLosses:
    """The losses of R runs on the same m documents."""

    run_ids: tuple[str, ...]
    tokens: NDArray[np.int64]  # predicted tokens of each document, (m,)
    nats: Array  # cross-entropy of each run on each document, summed over its tokens, (R, m)

    @property
    def losses(self) -> Array:
        """Returns the loss of each run, (R,), nats per token."""
        return np.asarray(self.nats.sum(1) / self.tokens.sum())

    @cached_property
    def covariance(self) -> Array:
        """Returns V (R, R), (nats per token)^2; NaN for a single document."""
        m = len(self.tokens)
        if m < 2:
            return np.full((len(self.run_ids),) * 2, np.nan)
        residuals = self.nats - self.losses[:, None] * self.tokens
        return np.asarray(m / (m - 1) * residuals @ residuals.T / self.tokens.sum() ** 2)

    def standard_error(self, weights: ArrayLike) -> Array:
        """Returns the error (...,) of contrasts sum_r w_r L_r with ``weights`` (..., R)."""
        w = np.asarray(weights, float)
        variance = np.einsum("...r,rs,...s->...", w, self.covariance, w)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def errors_among(self) -> Array:
        """Returns an error (R,) for each run's bar in a comparison of these R runs.

        It is the error of the run's distance from the mean of all, times sqrt(R / (R - 1)). The
        squares of two runs' equal bars then add up to the square of their difference's error, as
        for independent measurements (Cousineau 2005, corrected by Morey 2008). NaN for one run.
        """
        R = len(self.run_ids)
        if R < 2:
            return np.full(R, np.nan)
        return np.asarray(self.standard_error(np.eye(R) - 1 / R) * np.sqrt(R / (R - 1)))


def paired_losses(results: Results, run_ids: Sequence[str]) -> PairedLosses:
    """Returns the losses by document of completed runs, at least one.

    Raises UnpairedError if a run was trained before losses by document were kept, or if the runs
    were not measured on the same tokens of the same documents.
    """
    places, nats = [], []
    for run_id in run_ids:
        path = results.run(run_id) / DOCUMENTS
        if not path.is_file():
            raise UnpairedError(
                f"run {run_id} has no losses by document: it was trained before they were kept"
            )
        table = read_parquet(path)
        if missing := {"document", "tokens", "nats"} - set(table.column_names):
            raise UserError(f"{path}: no losses by document: it lacks {', '.join(sorted(missing))}")
        places.append([table[name].to_numpy() for name in ("document", "tokens")])
        nats.append(table["nats"].to_numpy())
        if not all(map(np.array_equal, places[-1], places[0])):
            raise UnpairedError(
                f"runs {run_ids[0]} and {run_id} were not measured on the same documents"
            )
    return PairedLosses(tuple(run_ids), places[0][1], np.stack(nats))
