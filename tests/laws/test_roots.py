"""Crossings of rising functions, for arrays at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.laws.roots import bisect, rising_root


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=5))
def test_crossings_are_found_to_the_last_digits(where):
    target = np.array(where)
    roots = rising_root(lambda x: (x - target) ** 3, np.full(len(where), -60.0), 61.0)
    assert roots == pytest.approx(target, abs=1e-13)


def test_no_crossing_is_nan_and_bisection_keeps_an_end():
    below, above = np.array([-1.0]), np.array([1.0])
    for function, end in ((lambda x: x + 5, below), (lambda x: x - 5, above)):
        assert np.isnan(rising_root(function, below, above))
        assert bisect(function, below, above) == pytest.approx(end)
    assert np.isnan(rising_root(lambda x: -x, below, above))  # falling
