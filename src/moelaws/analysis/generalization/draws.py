"""Estimates of a fit with their draws, and intervals of what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.report import FitPart


@dataclass(frozen=True)
class Estimates:
    """One part of a fit: its parameters, and draws (B,) of each."""

    part: FitPart
    params: Mapping[str, float]
    draws: Mapping[str, Array]
    level: float


def estimates(inputs: Inputs, fit: str) -> list[Estimates]:
    """The parts of the fit ``fit``, in rising order of what it is split by."""
    report = inputs.fit(fit)
    drawn = inputs.draws(fit)
    found = []
    for part in report.parts:
        own = np.ones(len(drawn), bool)
        for column, value in part.where.items():
            own &= np.isclose(drawn[column].to_numpy(float), value, rtol=1e-9, atol=0)
        draws = {name: drawn.loc[own, name].to_numpy(float) for name in part.params}
        found.append(Estimates(part, part.estimates(), draws, report.level))
    return found


def paired(*draws: Array, seed: int = 0) -> list[Array]:
    """Draws of independent fits as draws of them together: shuffled, cut to the shortest."""
    rng = np.random.default_rng(seed)
    n = min(len(draw) for draw in draws)
    return [draw[rng.permutation(len(draw))[:n]] for draw in draws]


def with_interval(name: str, value: float, draws: Array, level: float) -> dict[str, float]:
    """``name``, ``name_low`` and ``name_high`` of a number with its draws.

    Both ends are missing where more draws have no such number than may lie beyond one end: what
    is left of them would look more certain than it is.
    """
    draws = np.asarray(draws, float)
    low, high = percentile_interval(draws, level)
    if np.mean(~np.isfinite(draws)) > (1 - level) / 2 + 1e-9:
        low = high = float("nan")
    return {name: float(value), f"{name}_low": low, f"{name}_high": high}
