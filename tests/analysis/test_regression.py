"""Means, slopes and contrasts agree with each other and with least squares."""

import numpy as np
import pytest

from moelaws.analysis.regression import contrast, indicators, of_draws, of_mean, slope_weights


def test_a_mean_is_the_contrast_of_a_constant():
    y = np.array([1.0, 3.0, 2.0, 7.0])
    one = contrast(np.ones((4, 1)), y, np.ones(1))
    assert of_mean(y).interval == pytest.approx(one.interval)
    assert np.isnan(of_mean([2.0]).interval).tolist() == [False, True, True]


def test_groups_of_their_own_levels_share_the_slope_that_made_them():
    x, groups = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 8.0]), np.repeat([3, 1], 3)
    y = 2 * x + 10 * groups
    own = contrast(np.column_stack([x, indicators(groups)]), y, np.array([1.0, 0.0, 0.0]))
    assert own.interval == pytest.approx((2, 2, 2))
    assert slope_weights(x) @ (2 * x + 5) == pytest.approx(2)


def test_columns_that_depend_on_each_other_determine_nothing():
    assert np.isnan(contrast(np.ones((4, 2)), np.arange(4.0), np.array([1.0, 0.0])).value)


def test_the_first_value_is_the_estimate_and_the_others_give_the_interval():
    drawn = of_draws(np.array([100.0, *np.arange(101.0)]), n=5)
    assert (drawn.value, drawn.low, drawn.high, drawn.n) == pytest.approx((100, 5, 95, 5))
