"""Trends of r* and the depth of its valley."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from allocation_case import PAPER, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.studies.allocation.derived.cells import cells_of
from moelaws.studies.allocation.derived.trends import (
    contrast,
    curvature,
    exponent_difference,
    over_compute,
    over_sparsity,
)
from moelaws.studies.allocation.laws.ratio import beta_r, ratio


def table(C: list[float], S: list[float], noise: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """r* of the published law for each pair of ``C`` and ``S``."""
    grid = pd.DataFrame([{"C": c, "S": s} for c in C for s in S])
    rng = np.random.default_rng(seed)
    return grid.assign(r_raw=ratio(grid["C"], grid["S"]) * np.exp(rng.normal(0, noise, len(grid))))


def test_the_common_exponent_of_one_sparsity_is_the_published_one() -> None:
    trend = over_compute(table([1e18, 1e19, 1e20, 1e21], [14 / 17]))
    assert trend.value == pytest.approx(0.166729, rel=1e-4)  # beta_r(14/17)
    assert trend.high - trend.low < 1e-6
    assert trend.n == 4


def test_exponents_differ_as_the_published_law_says() -> None:
    S = [14 / 17, 30 / 33, 62 / 65, 126 / 129]
    trend = exponent_difference(table([1e18, 1e19, 1e20, 1e21], S))
    assert trend.value == pytest.approx(float(beta_r(S[0]) - beta_r(S[-1])), rel=1e-6)


def test_over_sparsity_has_the_elasticity_of_a_power_law() -> None:
    rows = pd.DataFrame([{"C": C, "S": S} for C in (1e19, 1e20) for S in (0.5, 0.8, 0.95)])
    rows = rows.assign(r_raw=rows["C"] ** 0.1 * (1 - rows["S"]) ** 0.3)
    assert over_sparsity(rows).value == pytest.approx(0.3, rel=1e-9)


def test_what_the_rows_cannot_tell_is_not_a_number() -> None:
    one_budget = table([1e20], [0.8, 0.9])
    assert np.isnan(over_compute(one_budget).value)
    assert np.isnan(exponent_difference(table([1e19, 1e20], [0.8])).value)
    assert np.isnan(over_sparsity(table([1e19, 1e20], [0.8])).value)
    exact = over_compute(table([1e19, 1e20], [0.8]))
    assert np.isfinite(exact.value)
    assert np.isnan([exact.low, exact.high]).all()  # two rows for two coefficients
    assert np.isnan(curvature([]).value)


@settings(max_examples=50, deadline=None)
@given(
    c=st.floats(0.001, 1), slope=st.floats(-1, 1), seed=st.integers(0, 5), groups=st.integers(1, 3)
)
def test_curvature_is_that_of_the_parabolas_whatever_their_levels_and_slopes(
    c: float, slope: float, seed: int, groups: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = []
    for i in range(groups):
        r = np.sort(rng.uniform(0.2, 1.5, 6))
        u = np.log(r)
        part = {"C": 10.0**i, "S_shared": 0.9, "r": r, "L": 3 + i + (slope + i) * u + c * u**2}
        parts.append(pd.DataFrame(part))
    assert curvature(cells_of(pd.concat(parts))).value == pytest.approx(c, rel=1e-6, abs=1e-9)


def test_the_interval_of_a_contrast_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(8), np.linspace(0, 1, 8)])
    covered = 0
    for _ in range(400):
        trend = contrast(X, X @ [1.0, 2.0] + rng.normal(0, 0.3, 8), np.array([0.0, 1.0]))
        covered += trend.low <= 2.0 <= trend.high
    assert covered / 400 == pytest.approx(0.9, abs=0.06)  # four binomial standard errors


def test_contrast_has_students_interval() -> None:
    """One observation of freedom: t of 0.95 is 6.3138, so the interval is known in closed form."""
    X = np.column_stack([np.ones(3), [-1.0, 0.0, 1.0]])
    y = np.array([0.0, 1.0, 1.0])
    trend = contrast(X, y, np.array([0.0, 1.0]))
    residual = y - X @ [2 / 3, 0.5]
    error = np.sqrt(np.sum(residual**2) / 1 / 2)
    assert trend.value == pytest.approx(0.5)
    assert trend.high - trend.value == pytest.approx(6.3138 * error, rel=0.05)
    assert trend.value - trend.low == pytest.approx(6.3138 * error, rel=0.05)


def test_losses_of_eq_2_curve_upwards() -> None:
    """Its kink at r* is no parabola, but the pooled curvature sees the valley."""
    frame = simulate(replace(PAPER, noise=0.0))
    trend = curvature(cells_of(frame))
    assert 0.01 < trend.value < 0.3
    assert trend.low > 0
