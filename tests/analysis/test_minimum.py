"""Minima of quadratics over a measured range."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from moelaws.analysis.minimum import (
    AT_HIGH_END,
    AT_LOW_END,
    NOT_CONVEX,
    abscissae,
    minima,
    minima_along,
    percentile_interval,
)  # fmt: skip

number = st.floats(-5, 5)


@given(number, number, number, st.floats(-20, 20), st.floats(0.1, 10))
def test_no_point_of_the_range_lies_lower(a, b, c, low, width):
    high = low + width
    lowest = minima(np.polyval([a, b, c], abscissae(low, high)), low, high)
    everywhere = np.polyval([a, b, c], np.linspace(low, high, 1001))
    tolerance = 1e-6 * (1 + np.abs(everywhere).max())
    assert low - 1e-9 <= lowest.x[0] <= high + 1e-9
    assert lowest.y[0] == pytest.approx(np.polyval([a, b, c], lowest.x[0]), abs=tolerance)
    assert lowest.y[0] <= everywhere.min() + tolerance


@given(st.floats(0.01, 5), st.floats(-3, 3))
def test_inside_is_the_vertex_and_outside_names_the_end(curvature, vertex):
    assume(abs(abs(vertex) - 1) > 1e-3)
    lowest = minima(curvature * (abscissae(-1, 1) - vertex) ** 2, -1, 1)
    assert lowest.convex[0]
    assert lowest.inside[0] == (abs(vertex) < 1)
    if lowest.inside[0]:
        assert lowest.notes == ("",)
        assert lowest.x[0] == pytest.approx(vertex, abs=1e-9)
    else:
        assert lowest.notes == (AT_HIGH_END if vertex > 0 else AT_LOW_END,)


def test_a_dome_has_no_minimum_inside():
    lowest = minima(np.array([1.0, 2.0, 0.5]), 0, 1)
    assert (lowest.convex[0], lowest.inside[0]) == (False, False)
    assert (lowest.x[0], lowest.y[0]) == (1.0, 0.5)
    assert lowest.notes == (NOT_CONVEX,)


def test_interval_ignores_missing_draws_and_is_missing_without_any():
    draws = np.append(np.linspace(0, 1, 101), np.nan)
    assert percentile_interval(draws, 0.9) == pytest.approx((0.05, 0.95))
    assert np.isnan(percentile_interval(np.empty(0), 0.9)).all()


@given(st.floats(0.01, 5), st.floats(-3, 3))
def test_along_a_parabola_the_minimum_is_its_own(curvature, vertex):
    assume(abs(abs(vertex) - 1) > 1e-3)
    x = np.linspace(-1, 1, 41)
    along = minima_along(curvature * (x - vertex) ** 2, x)
    exact = minima(curvature * (abscissae(-1, 1) - vertex) ** 2, -1, 1)
    assert along.x == pytest.approx(exact.x, abs=1e-6)
    assert along.notes == exact.notes


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
