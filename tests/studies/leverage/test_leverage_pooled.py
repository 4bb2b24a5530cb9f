"""Parabolas and slopes over several budgets, each with a level of its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.analysis.minimum import percentile_interval
from moelaws.studies.leverage.derived.series import parabola, regression, slope

T = np.log2([2, 4, 6, 8, 12, 16])


def losses(t, best, curvature=0.004, noise=0.0, seed=0, budgets=4):
    rng = np.random.default_rng(seed)
    C = np.repeat(10.0 ** np.arange(18, 18 + budgets), len(t))
    x = np.tile(t, budgets)
    ln_L = 1 - 0.05 * np.log10(C / 1e18) + curvature * (x - best) ** 2
    return x, np.exp(ln_L + rng.normal(0, noise, len(x))), C


@given(best=st.floats(1.2, 3.8), curvature=st.floats(1e-4, 1))
def test_an_exact_parabola_is_recovered_whatever_the_budgets_levels(best, curvature):
    common = parabola(*losses(T, best, curvature))
    assert common.optima()[0] == pytest.approx(best, abs=1e-6)
    assert (common.low, common.high, common.n, common.budgets) == (1, 4, 24, 4)
    assert common.excess(4.0)[0] == pytest.approx(curvature * (4 - best) ** 2, abs=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = [
        low <= 3.0 <= high
        for seed in range(200)
        for optima in [parabola(*losses(T, 3.0, noise=0.001, seed=seed)).optima()]
        for low, high in [percentile_interval(optima[1:], 0.9)]
    ]
    assert 0.84 <= np.mean(held) <= 0.96


def test_too_few_values_are_no_parabola_and_an_exact_fit_has_no_interval():
    assert parabola(*losses(T[:2], 2.0)) is None
    x, L, C = losses(T[:3], 1.5, budgets=1)
    one = parabola(x, L, C)
    assert one.optima() == pytest.approx([1.5])
    assert len(one.excess(1.0)) == 1  # the estimate alone
    # Three values in all but never three at a budget.
    assert parabola(np.array([1.0, 2, 2, 3]), np.full(4, 3.0), np.array([1.0, 1, 2, 2])) is None


def test_a_bowl_upside_down_is_least_at_an_end():
    assert parabola(*losses(T, 2.0, curvature=-0.004)).optima()[0] == 4.0


def test_slope_within_groups_ignores_what_groups_differ_by():
    rng = np.random.default_rng(1)
    groups = np.repeat([1.0, 2, 3], 5)
    x = rng.normal(size=15) + 10 * groups
    y = 0.5 * x - 40 * groups + rng.normal(0, 0.01, 15)
    value, low, high = slope(x, y, groups).interval
    assert value == pytest.approx(0.5, abs=0.02)
    assert low < value < high < 0.6
    design = np.column_stack([x, *(groups == g for g in (1, 2, 3))])
    assert value == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0][0], rel=1e-9)


def test_rows_that_say_nothing_give_nothing():
    assert np.isnan(slope(np.ones(6), np.arange(6.0), np.zeros(6)).interval).all()
    assert regression(np.ones((1, 2)), np.ones(1), np.ones(1)) is None
    assert np.isnan(slope(np.empty(0), np.empty(0), np.empty(0)).interval).all()
