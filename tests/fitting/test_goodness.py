"""What residuals say of themselves: normal or not, and how far a new loss may be off."""

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student_t

from moelaws.fitting.goodness import TAILS, describe, errors

LEVELS = np.linspace(0.005, 0.995, TAILS)


def test_normal_errors_pass_the_test_of_normality_as_often_as_they_should():
    """Jarque-Bera of 500 rows, 400 tables: p is below .1 in about 10 % and below .5 in half."""
    rng = np.random.default_rng(0)
    p = np.array([describe(r, 2, None, False).normal_p for r in rng.normal(size=(400, 500))])
    assert 20 <= (p < 0.1).sum() <= 60
    least, most = binom.ppf([1e-4, 1 - 1e-4], 400, 0.5)
    assert least - 20 <= (p < 0.5).sum() <= most + 20


def test_heavy_tails_and_lopsided_errors_do_not():
    rng = np.random.default_rng(0)
    heavy = describe(rng.standard_t(2, 200), 2, None, False)
    assert heavy.normal_p < 1e-6
    assert heavy.excess_kurtosis > 2
    lopsided = describe(rng.exponential(size=200) - 1, 2, None, False)
    assert lopsided.normal_p < 1e-6
    assert lopsided.skew == pytest.approx(2, abs=1)


def test_quantiles_of_least_squares_are_students():
    r = np.random.default_rng(1).normal(size=20)
    summary = describe(r, 3, None, True)
    sd = np.sqrt((r**2).sum() / 17)
    assert summary.sd == pytest.approx(sd)
    assert summary.quantiles == pytest.approx(sd * student_t.ppf(LEVELS, 17))


def test_other_quantiles_are_the_residuals_own_widened_for_the_parameters():
    r = np.random.default_rng(1).laplace(size=50)
    summary = describe(r, 5, None, False)
    assert summary.quantiles == pytest.approx(np.quantile(r, LEVELS) * np.sqrt(50 / 45))
    assert len(summary.quantiles) == TAILS


def test_weighted_residuals_are_those_of_a_row_of_weight_1():
    rng = np.random.default_rng(2)
    se = rng.uniform(0.5, 2, 4000)
    summary = describe(se * rng.normal(size=4000), 1, 1 / se**2, True)
    assert summary.sd == pytest.approx(1, abs=0.05)
    assert summary.normal_p > 0.01


@pytest.mark.parametrize("n", [2, 3, 7])
def test_few_rows_say_little(n):
    summary = describe(np.random.default_rng(0).normal(size=n), 3, None, False)
    assert (summary.skew, summary.excess_kurtosis, summary.normal_p) == (None, None, None)
    assert (summary.sd is None) == (summary.quantiles is None) == (n <= 3)


def test_errors_by_their_definitions():
    observed, predicted = np.array([2.0, 2.5, 4.0]), np.array([2.1, 2.4, 4.4])
    metrics = errors(observed, predicted, 1e-3)
    assert metrics["mse"] == pytest.approx(0.06)
    assert metrics["rmse"] == pytest.approx(0.06**0.5)
    assert metrics["bias"] == pytest.approx(0.4 / 3)
    assert metrics["r2"] == pytest.approx(1 - 0.18 / np.var(observed) / 3)
    ratios = np.abs(np.log(predicted / observed))
    assert metrics["huber_sum"] == pytest.approx((1e-3 * (ratios - 5e-4)).sum())
    assert metrics["huber_mean"] == pytest.approx(metrics["huber_sum"] / 3)
    assert errors(np.full(3, 2.0), predicted, 1e-3)["r2"] is None
    same = np.full(180, 2.1)  # its mean is another number in the last digit
    assert errors(same, same, 1e-3)["r2"] is None
    assert errors(observed - 3, predicted, 1e-3)["huber_sum"] is None
