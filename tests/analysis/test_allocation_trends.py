"""Trends of r*, the depth of its valley, and which law predicts held-out runs better."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation_case import PAPER, Setting, simulate
from moelaws.analysis.allocation.comparison import Predicted, excess, rmse
from moelaws.analysis.allocation.r_star import cells_of
from moelaws.analysis.allocation.trends import (
    contrast,
    curvature,
    exponent_difference,
    over_compute,
    over_sparsity,
)
from moelaws.laws.allocation.ratio import beta_r, ratio


def table(C: list[float], S: list[float], noise: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """r* of the published law for each pair of ``C`` and ``S``."""
    grid = pd.DataFrame([{"C": c, "S": s} for c in C for s in S])
    rng = np.random.default_rng(seed)
    return grid.assign(r_raw=ratio(grid["C"], grid["S"]) * np.exp(rng.normal(0, noise, len(grid))))


def test_the_common_exponent_of_one_sparsity_is_the_published_one() -> None:
    found = over_compute(table([1e18, 1e19, 1e20, 1e21], [14 / 17]))
    assert found.value == pytest.approx(0.166729, rel=1e-4)  # beta_r(14/17)
    assert found.high - found.low < 1e-6
    assert found.n == 4


def test_exponents_differ_as_the_published_law_says() -> None:
    S = [14 / 17, 30 / 33, 62 / 65, 126 / 129]
    found = exponent_difference(table([1e18, 1e19, 1e20, 1e21], S))
    assert found.value == pytest.approx(float(beta_r(S[0]) - beta_r(S[-1])), rel=1e-6)


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
        found = contrast(X, X @ [1.0, 2.0] + rng.normal(0, 0.3, 8), np.array([0.0, 1.0]))
        covered += found.low <= 2.0 <= found.high
    assert covered / 400 == pytest.approx(0.9, abs=0.06)  # four binomial standard errors


def test_contrast_has_students_interval() -> None:
    """One observation of freedom: t of 0.95 is 6.3138, so the interval is known in closed form."""
    X = np.column_stack([np.ones(3), [-1.0, 0.0, 1.0]])
    y = np.array([0.0, 1.0, 1.0])
    found = contrast(X, y, np.array([0.0, 1.0]))
    residual = y - X @ [2 / 3, 0.5]
    error = np.sqrt(np.sum(residual**2) / 1 / 2)
    assert found.value == pytest.approx(0.5)
    assert found.high - found.value == pytest.approx(6.3138 * error, rel=0.05)
    assert found.value - found.low == pytest.approx(6.3138 * error, rel=0.05)


def test_losses_of_eq_2_curve_upwards() -> None:
    """Its kink at r* is no parabola, but the pooled curvature sees the valley."""
    frame = simulate(Setting(**{**vars(PAPER), "noise": 0.0}))
    found = curvature(cells_of(frame))
    assert 0.01 < found.value < 0.3
    assert found.low > 0


def predictions(L: np.ndarray, value: np.ndarray, spread: float = 0.0) -> Predicted:
    held = np.arange(len(L)) >= 4
    draws = value + spread * np.random.default_rng(0).standard_normal((100, 1))
    return Predicted(pd.DataFrame({"L": L}), ~held, held, value, draws)


def test_the_worse_law_has_the_larger_error_on_the_held_out_rows_alone() -> None:
    L = np.linspace(2, 3, 24)
    good, bad = L + 0.01 * (-1) ** np.arange(24), L + 0.1 * (-1) ** np.arange(24)
    good[:4] = 9.0  # fitted rows do not count
    found = excess(predictions(L, bad), predictions(L, good))
    assert found.value == pytest.approx(0.09)
    assert 0 < found.low <= found.value <= found.high
    assert found.n == 20
    assert rmse(predictions(L, bad), predictions(L, bad).held) == pytest.approx(0.1)


def test_laws_that_their_draws_cannot_tell_apart_have_an_interval_about_nothing() -> None:
    L = np.random.default_rng(3).normal(3, 0.3, 24)
    one, other = np.full(24, 3.0), np.full(24, 3.005)
    found = excess(predictions(L, one, 0.05), predictions(L, other, 0.05))
    assert found.low < 0 < found.high


def test_without_draws_or_held_out_rows_there_is_no_interval() -> None:
    L = np.linspace(2, 3, 8)
    bare = Predicted(pd.DataFrame({"L": L}), L < 2.5, L >= 2.5, L + 0.1, np.empty((0, 8)))
    assert np.isnan(excess(bare, bare).low)
    none = Predicted(bare.rows, L > 0, L < 0, bare.value, bare.draws)
    assert excess(none, bare).n == 0
    assert np.isnan(rmse(none, none.held))
