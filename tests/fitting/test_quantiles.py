"""Quantiles behind intervals, and least squares against the textbook's t distribution."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from moelaws.fitting.quantiles import jackknife, least_squares, percentiles, student_t, t_interval


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


X = np.vander(np.linspace(-1, 1, 7), 3)
Y = X @ [0.3, -0.2, 2.0] + 0.05 * np.random.default_rng(1).standard_normal(7)


def test_quantiles_of_the_draws_are_the_textbooks_intervals():
    fit = least_squares(X, Y, draws=200_000)
    residual = Y - X @ fit.coefficients
    assert X.T @ residual == pytest.approx(np.zeros(3), abs=1e-12)
    error = np.sqrt(residual @ residual / 4 * np.diag(np.linalg.inv(X.T @ X)))
    low, high = np.quantile(fit.draws, [0.05, 0.95], axis=0)
    reach = student.ppf(0.95, 4) * error
    assert low == pytest.approx(fit.coefficients - reach, abs=0.02 * reach.max())
    assert high == pytest.approx(fit.coefficients + reach, abs=0.02 * reach.max())


def test_means_of_groups_that_were_taken_off_cost_freedom_as_their_columns_would():
    """Within groups: the same slope and the same draws' spread as with an indicator a group."""
    groups = np.repeat([0, 1, 2], 4)
    x = np.random.default_rng(2).uniform(size=12)
    y = 3 * x + groups + 0.1 * np.random.default_rng(3).standard_normal(12)
    means = np.array([[x[groups == g].mean(), y[groups == g].mean()] for g in groups])
    within = least_squares((x - means[:, 0])[:, None], y - means[:, 1], draws=100_000, absorbed=3)
    whole = least_squares(
        np.column_stack([x, groups[:, None] == np.arange(3)]), y, draws=100_000, seed=1
    )
    assert within.coefficients[0] == pytest.approx(whole.coefficients[0])
    tails = [0.05, 0.5, 0.95]
    expected = np.quantile(whole.draws[:, 0], tails)
    assert np.quantile(within.draws[:, 0], tails) == pytest.approx(expected, rel=0.01)


def test_an_exact_fit_says_nothing_of_its_errors():
    fit = least_squares(X[:3], Y[:3])
    assert X[:3] @ fit.coefficients == pytest.approx(Y[:3])
    assert fit.draws.shape == (0, 3)


def test_draws_follow_from_the_seed_to_the_last_digit():
    """The order of the generator's calls is fixed: stored intervals rest on it."""
    fit = least_squares(X, Y, draws=5, seed=3)
    rng = np.random.default_rng(3)
    normal = rng.standard_normal((5, 3)) @ np.linalg.inv(np.linalg.qr(X).R).T
    scale = np.sqrt(np.sum((Y - X @ fit.coefficients) ** 2) / 4)
    t = scale * normal / np.sqrt(rng.chisquare(4, (5, 1)) / 4)
    assert (fit.draws == fit.coefficients + t).all()


def test_few_degrees_of_freedom_have_heavy_tails():
    drawn = student_t(np.eye(2), 3, 100_000, seed=0)
    assert np.quantile(drawn, 0.95, axis=0) == pytest.approx(student.ppf(0.95, 3), rel=0.03)
