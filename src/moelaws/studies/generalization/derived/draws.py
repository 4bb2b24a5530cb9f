"""Estimates of a fit with their draws, and intervals of what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.report import FitPart


@dataclass(frozen=True)
class Estimates:
    """What a fit to one set of rows estimates: its parameters with draws (B,) of each."""

    result: FitPart
    params: Mapping[str, float]
    draws: Mapping[str, Array]
    level: float

    def with_interval(self, parameter: str) -> dict[str, float]:
        """Returns the parameter's estimate and interval as value, value_low and value_high."""
        return with_interval("value", self.params[parameter], self.draws[parameter], self.level)


def estimates(inputs: FittedInputs, fit: str) -> list[Estimates]:
    """Returns what ``fit`` estimates for each value that splits it, in rising order."""
    report, drawn = inputs.fit(fit), inputs.draws(fit)
    estimated = []
    for result in report.parts:
        own = np.ones(len(drawn), bool)
        for column, value in result.where.items():
            own &= np.isclose(drawn[column].to_numpy(float), value, rtol=1e-9, atol=0)
        draws = {name: drawn.loc[own, name].to_numpy(float) for name in result.params}
        estimated.append(Estimates(result, result.estimates(), draws, report.level))
    return estimated


def paired(*draws: Array, seed: int = 0) -> list[Array]:
    """Returns draws of independent fits as joint draws: shuffled, and cut to the shortest."""
    rng = np.random.default_rng(seed)
    n = min(len(draw) for draw in draws)
    return [draw[rng.permutation(len(draw))[:n]] for draw in draws]


def interval(draws: Array, level: float) -> tuple[float, float]:
    """Returns the equal-tailed interval of ``draws`` (B,), some of which may be NaN.

    Both ends are NaN where more draws are missing than may lie beyond one end: what is left of
    them would look more certain than it is.
    """
    if np.count_nonzero(~np.isfinite(draws)) > ((1 - level) / 2 + 1e-9) * len(draws):
        return float("nan"), float("nan")
    return percentile_interval(draws, level)


def with_interval(name: str, value: float, draws: Array, level: float) -> dict[str, float]:
    """Returns ``name``, ``name_low`` and ``name_high`` of a number with its draws (B,)."""
    low, high = interval(draws, level)
    return {name: float(value), f"{name}_low": low, f"{name}_high": high}
