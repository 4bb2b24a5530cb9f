"""Laws ranked by their errors on the same rows, with what chance leaves open of the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from moelaws.fitting.intervals import resampled
from moelaws.fitting.judged import Standing
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.base import Array

WORST = 1e100  # the error of a draw whose predictions overflow


@dataclass(frozen=True)
class Judged:
    """One law on rows that were kept from its fit.

    Attributes:
        rows: (n,) numbers of the rows, by which one is known again in another step.
        observed, predicted: (n,) the response, natural unit.
        drawn: (B, n) predictions of the fit's draws; None where it has none.
        blocks: (n,) names of the blocks of rows that err together; None where each errs by itself.
    """

    rows: NDArray[np.intp]
    observed: Array
    predicted: Array
    drawn: Array | None
    blocks: NDArray[np.object_] | None = None

    def squares(self) -> Array:
        """Squared errors (n,)."""
        return np.asarray((self.predicted - self.observed) ** 2)


def standings(
    judged: Mapping[str, Sequence[Judged]], level: float, seed: int
) -> dict[str, Standing]:
    """Ranks laws by the root mean square error over all their judged rows.

    Args:
        judged: law -> its predictions at each step, of the same rows for all laws.
        level: of the intervals.
        seed: of the resampling.

    Returns:
        law -> n, rmse, r2 (None where all responses are equal), rmse_excess over the best law's,
        rank; and, of a law that has draws, ``rmse_interval``, ``rank_interval``, ``first`` (how
        often it is the best) and, where the best law has draws, ``rmse_excess_interval`` and
        ``told_apart``. They resample the judged rows, the same for all laws, and take the draws of
        each fit. A draw predicts a little worse than the fit itself, so that an interval may lie
        above its error. The ends of intervals are draws: none lies between a finite error and an
        overflowing one.
    """
    rmse = {
        law: float(np.sqrt(np.concatenate([one.squares() for one in steps]).mean()))
        for law, steps in judged.items()
    }
    best = min(rmse, key=lambda law: rmse[law])
    ranks = rankdata(list(rmse.values()), method="min")
    drawn = _drawn(judged, seed)
    places = rankdata(list(drawn.values()), method="min", axis=0) if drawn else np.empty((0, 0))
    place = dict(zip(drawn, places, strict=True))
    entries: dict[str, Standing] = {}
    for (law, steps), rank in zip(judged.items(), ranks, strict=True):
        entry = entries[law] = {
            "n": sum(len(one.observed) for one in steps),
            "rmse": rmse[law],
            "r2": _r2(steps),
            "rmse_excess": rmse[law] - rmse[best],
            "rank": int(rank),
        }
        if law in drawn:
            entry["rmse_interval"] = _written(_ends(drawn[law], level))
            low, high = _ends(place[law], level)
            entry["rank_interval"] = [int(low), int(high)]
            entry["first"] = float((place[law] == 1).mean())
        if law in drawn and best in drawn:
            ends = _ends(drawn[law] - drawn[best], level)
            entry["rmse_excess_interval"] = _written(ends)
            if law != best:
                entry["told_apart"] = ends[0] > 0
    return entries


def _drawn(judged: Mapping[str, Sequence[Judged]], seed: int) -> dict[str, Array]:
    """Law -> (draws,) root mean square errors, of the laws that have draws at every step.

    A row that is judged in several steps is drawn for all of them at once, and rows of a block
    together.
    """
    known = {
        law: [one.drawn for one in steps if one.drawn is not None] for law, steps in judged.items()
    }
    known = {law: draws for law, draws in known.items() if len(draws) == len(judged[law])}
    count = min((len(draw) for draws in known.values() for draw in draws), default=0)
    if not count:
        return {}
    steps = next(iter(judged.values()))
    rows, first, place = np.unique(
        np.concatenate([one.rows for one in steps]), return_index=True, return_inverse=True
    )
    rng = np.random.default_rng([seed, 1])  # not the stream that drew the fitted rows
    weights = resampled(len(rows), _groups(steps, first), count, rng)[:, place]
    errors = {}
    for law, draws in known.items():
        residuals = [
            draw[:count] - one.observed for draw, one in zip(draws, judged[law], strict=True)
        ]
        with np.errstate(invalid="ignore", over="ignore"):
            squares = weights * np.concatenate(residuals, axis=1) ** 2
        mean = squares.sum(axis=1) / weights.sum(axis=1)
        errors[law] = np.nan_to_num(np.sqrt(mean), nan=WORST, posinf=WORST)
    return errors


def _groups(steps: Sequence[Judged], first: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """The block of each row, counted from 0; None where rows are drawn one by one.

    So are rows that are all of one block: there is no other block to draw.
    """
    blocks = [one.blocks for one in steps if one.blocks is not None]
    if not blocks:
        return None
    groups = np.unique(np.concatenate(blocks)[first].astype(str), return_inverse=True)[1]
    return groups if groups.any() else None


def _r2(steps: Sequence[Judged]) -> float | None:
    """Over all rows at once, about their common mean."""
    observed = np.concatenate([one.observed for one in steps])
    squares = np.concatenate([one.squares() for one in steps])
    spread = float(((observed - observed.mean()) ** 2).sum())
    return 1 - float(squares.sum()) / spread if np.ptp(observed) > 0 else None


def _ends(draws: Array, level: float) -> tuple[float, float]:
    low, high = percentiles(draws, level, "inverted_cdf")
    return float(low), float(high)


def _written(ends: tuple[float, float]) -> list[float | None]:
    """The ends as JSON data, None for one that is infinite."""
    return [end if abs(end) < WORST / 2 else None for end in ends]
