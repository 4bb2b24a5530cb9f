"""Minima, regressions and predictions: estimates of their truth, with intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moelaws.analysis.effect import Effect
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, NOT_CONVEX, minima, minima_along
from moelaws.analysis.predictions import Prediction, excess, rmse
from moelaws.analysis.regression import contrast, indicators, of_draws, of_mean, slope_weights

number = st.floats(-5, 5)


@given(number, number, number, st.floats(-20, 20), st.floats(0.1, 10))
def test_no_point_of_the_range_lies_lower(a, b, c, low, width):
    high = low + width
    lowest = minima(np.polyval([a, b, c], np.linspace(low, high, 3)), low, high)
    everywhere = np.polyval([a, b, c], np.linspace(low, high, 1001))
    tolerance = 1e-6 * (1 + np.abs(everywhere).max())
    assert low - 1e-9 <= lowest.x[0] <= high + 1e-9
    assert lowest.y[0] == pytest.approx(np.polyval([a, b, c], lowest.x[0]), abs=tolerance)
    assert lowest.y[0] <= everywhere.min() + tolerance
    if not lowest.convex[0]:
        assert lowest.notes == (NOT_CONVEX,)


@given(st.floats(0.01, 5), st.floats(-3, 3))
def test_inside_is_the_vertex_and_outside_names_the_end(curvature, vertex):
    assume(abs(abs(vertex) - 1) > 1e-3)
    lowest = minima(curvature * (np.linspace(-1, 1, 3) - vertex) ** 2, -1, 1)
    assert lowest.convex[0]
    assert lowest.inside[0] == (abs(vertex) < 1)
    if lowest.inside[0]:
        assert lowest.notes == ("",)
        assert lowest.x[0] == pytest.approx(vertex, abs=1e-9)
    else:
        assert lowest.notes == (AT_HIGH_END if vertex > 0 else AT_LOW_END,)


def test_along_a_quartic_the_minimum_is_where_three_points_miss_it():
    """(x + 1)^2 (x - 2)^2 + x / 10 over [-2, 3]: two valleys, of which the left one is deeper."""
    x = np.linspace(-2, 3, 41)
    y = np.polyval(np.polymul([1, 2, 1], [1, -4, 4]), x) + x / 10
    roots = np.roots(np.polyder(np.polyadd(np.polymul([1, 2, 1], [1, -4, 4]), [0.1, 0])))
    along = minima_along(np.stack([y, y[::-1]]), x)
    assert along.inside.all()
    assert along.x[0] == pytest.approx(roots.real.min(), abs=0.01)
    assert along.x[1] == pytest.approx(1 - roots.real.min(), abs=0.01)
    assert minima(y[[0, 20, 40]], -2, 3).x[0] == pytest.approx(0.5, abs=0.1)  # between the two


def test_a_mean_is_the_contrast_of_a_constant():
    y = np.array([1.0, 3.0, 2.0, 7.0])
    one = contrast(np.ones((4, 1)), y, np.ones(1))
    assert of_mean(y).interval == pytest.approx(one.interval)
    assert np.isnan(of_mean([2.0]).interval).tolist() == [False, True, True]
    drawn = of_draws(np.array([100.0, *np.arange(101.0)]), n=5)
    assert (drawn.value, drawn.low, drawn.high, drawn.n) == pytest.approx((100, 5, 95, 5))


def test_groups_of_their_own_levels_share_the_slope_that_made_them():
    x, groups = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 8.0]), np.repeat([3, 1], 3)
    y = 2 * x + 10 * groups
    own = contrast(np.column_stack([x, indicators(groups)]), y, np.array([1.0, 0.0, 0.0]))
    assert own.interval == pytest.approx((2, 2, 2))
    assert slope_weights(x) @ (2 * x + 5) == pytest.approx(2)
    assert np.isnan(slope_weights(np.array([3.0, 3.0]))).all()
    # Columns that depend on each other determine nothing
    assert np.isnan(contrast(np.ones((4, 2)), np.arange(4.0), np.array([1.0, 0.0])).value)


def predictions(L: np.ndarray, value: np.ndarray, spread: float = 0.0) -> Prediction:
    held = np.arange(len(L)) >= 4
    draws = value + spread * np.random.default_rng(0).standard_normal((100, 1))
    return Prediction(pd.DataFrame({"L": L}), ~held, held, value, draws)


def test_the_worse_law_has_the_larger_error_on_the_held_out_rows_alone() -> None:
    L = np.linspace(2, 3, 24)
    good, bad = L + 0.01 * (-1) ** np.arange(24), L + 0.1 * (-1) ** np.arange(24)
    good[:4] = 9.0  # fitted rows do not count
    difference = excess(predictions(L, bad), predictions(L, good))
    assert difference.value == pytest.approx(0.09)
    assert 0 < difference.low <= difference.value <= difference.high
    assert difference.n == 20
    assert rmse(predictions(L, bad), predictions(L, bad).held) == pytest.approx(0.1)
    # Laws that their draws cannot tell apart have an interval about nothing
    L = np.random.default_rng(3).normal(3, 0.3, 24)
    one, other = (predictions(L, np.full(24, value), 0.05) for value in (3.0, 3.005))
    near = excess(one, other)
    assert near.low < 0 < near.high


@given(st.floats(0.1, 10), st.floats(0, 5), st.floats(0, 5))
def test_a_falling_function_swaps_the_ends(value, below, above):
    effect = Effect(value + below, value, value + below + above)
    for function in (np.reciprocal, np.negative, np.exp):
        mapped = effect.map(function)
        assert mapped.low <= mapped.value <= mapped.high
        assert {mapped.low, mapped.high} == set(function(np.array([effect.low, effect.high])))
    assert (effect * 0.5).interval == pytest.approx(np.array(effect.interval) / 2)
