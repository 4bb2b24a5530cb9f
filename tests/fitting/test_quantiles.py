"""Quantiles behind intervals: of draws, of Student's t, and over groups that are left out."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from moelaws.fitting.quantiles import jackknife, percentiles, t_interval


def test_percentiles_are_the_middle_of_the_draws():
    draws = np.column_stack([np.arange(101.0), -np.arange(101.0)])
    low, high = percentiles(draws, 0.9)
    np.testing.assert_allclose([low, high], [[5, -95], [95, -5]])
    assert np.isnan(percentiles(draws[:0], 0.9)).all()


def test_an_end_among_infinite_draws_is_a_draw_and_not_a_mean_with_infinity():
    draws = np.r_[np.arange(18.0), np.inf, np.inf][:, None]
    low, high = percentiles(draws, 0.9, method="inverted_cdf")
    assert (low, high) == (0, np.inf)


def test_the_t_interval_of_a_mean_is_the_textbooks():
    values = np.array([1.0, 2.0, 4.0, 4.5])
    theirs = ttest_1samp(values, 0).confidence_interval(0.9)
    se = values.std(ddof=1) / 2
    assert t_interval(values.mean(), se, 3, 0.9) == pytest.approx((theirs.low, theirs.high))
    assert np.isnan(t_interval(1.0, 0.1, 0, 0.9)).all()


def test_leaving_groups_out_gives_a_mean_the_interval_of_the_groups_means():
    """For equal groups the jackknife of a mean is exact, whatever is common to a group."""
    rng = np.random.default_rng(0)
    groups = rng.normal(0, 1, (6, 1)) + rng.normal(0, 0.1, (6, 10))
    left_out = [np.delete(groups, g, axis=0).mean() for g in range(6)]
    low, high = jackknife(np.array([groups.mean()]), np.array(left_out)[:, None], 0.9)
    theirs = ttest_1samp(groups.mean(axis=1), 0).confidence_interval(0.9)
    assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high))
