"""Laws ranked by their errors on the same held-out rows, with what chance leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from moelaws.fitting.intervals import resampled
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.scores import Score
from moelaws.laws.base import Array

WORST = 1e100  # the error of a draw whose predictions overflow


@dataclass(frozen=True)
class HeldOut:
    """One law's predictions of rows that were held out of its fit."""

    rows: NDArray[np.intp]  # (n,) numbers of the rows: the same row may be held out in several fits
    observed: Array  # (n,) the response, natural unit
    predicted: Array  # (n,)
    drawn: Array | None  # (B, n) predictions of the fit's draws
    blocks: NDArray[np.object_] | None = None  # (n,) names of the blocks of rows that err together


Predictions = Mapping[str, Sequence[HeldOut]]  # law -> its predictions in each of several rounds


def rank(predictions: Predictions, level: float, seed: int) -> dict[str, Score]:
    """Ranks laws by the root mean square error over all their held-out rows, the same for all.

    Intervals resample the rows, the same for all laws, and take the draws of each fit. A draw
    predicts a little worse than the fit itself, so that an interval may lie above its error. The
    ends of intervals are draws: none lies between a finite error and an overflowing one.
    """
    residuals = {
        law: np.concatenate([one.predicted - one.observed for one in rounds])
        for law, rounds in predictions.items()
    }
    rmse = {law: float(np.sqrt((residual**2).mean())) for law, residual in residuals.items()}
    best = min(rmse, key=lambda law: rmse[law])
    ranks = rankdata(list(rmse.values()), method="min")
    drawn = _drawn_errors(predictions, seed)
    drawn_ranks = rankdata(list(drawn.values()), method="min", axis=0) if drawn else []
    place = dict(zip(drawn, drawn_ranks, strict=True))
    # Responses are the same for all laws.
    observed = np.concatenate([one.observed for one in predictions[best]])
    spread = float(((observed - observed.mean()) ** 2).sum()) if np.ptp(observed) > 0 else None
    scores: dict[str, Score] = {}
    for law, own in zip(predictions, ranks, strict=True):
        score = scores[law] = {
            "n": len(observed),
            "rmse": rmse[law],
            "r2": 1 - float((residuals[law] ** 2).sum()) / spread if spread else None,
            "rmse_excess": rmse[law] - rmse[best],
            "rank": int(own),
        }
        if law in drawn:
            score["rmse_interval"] = _finite(_ends(drawn[law], level))
            low, high = _ends(place[law], level)
            score["rank_interval"] = [int(low), int(high)]
            score["first"] = float((place[law] == 1).mean())
        if law in drawn and best in drawn:
            ends = _ends(drawn[law] - drawn[best], level)
            score["rmse_excess_interval"] = _finite(ends)
            if law != best:
                score["told_apart"] = ends[0] > 0
    return scores


def _drawn_errors(predictions: Predictions, seed: int) -> dict[str, Array]:
    """Returns the root mean square errors (draws,) of the laws that have draws in every round.

    A row that is held out in several rounds is drawn for all of them at once, and rows of a block
    together.
    """
    known = {
        law: [one.drawn for one in rounds if one.drawn is not None]
        for law, rounds in predictions.items()
    }
    known = {law: draws for law, draws in known.items() if len(draws) == len(predictions[law])}
    count = min((len(draw) for draws in known.values() for draw in draws), default=0)
    if not count:
        return {}
    rounds = next(iter(predictions.values()))
    rows, first, place = np.unique(
        np.concatenate([one.rows for one in rounds]), return_index=True, return_inverse=True
    )
    groups = None
    blocks = [one.blocks for one in rounds if one.blocks is not None]
    if blocks:
        groups = np.unique(np.concatenate(blocks)[first].astype(str), return_inverse=True)[1]
        if not groups.any():  # there is no other block to draw
            groups = None
    rng = np.random.default_rng([seed, 1])  # not the stream that drew the fitted rows
    weights = resampled(len(rows), groups, count, rng)[:, place]
    errors = {}
    for law, draws in known.items():
        residuals = [
            draw[:count] - one.observed for draw, one in zip(draws, predictions[law], strict=True)
        ]
        with np.errstate(invalid="ignore", over="ignore"):
            squares = weights * np.concatenate(residuals, axis=1) ** 2
        mean = squares.sum(axis=1) / weights.sum(axis=1)
        errors[law] = np.nan_to_num(np.sqrt(mean), nan=WORST, posinf=WORST)
    return errors


def _ends(draws: Array, level: float) -> tuple[float, float]:
    low, high = percentiles(draws, level, "inverted_cdf")
    return float(low), float(high)


def _finite(ends: tuple[float, float]) -> list[float | None]:
    return [end if abs(end) < WORST / 2 else None for end in ends]
