"""Intervals mean what they say: textbook Student's t, whole blocks, delta method, profiles."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted_group
from scipy.optimize import brentq
from scipy.stats import chi2, ttest_1samp
from scipy.stats import t as student_t

from moelaws import laws
from moelaws.fitting.intervals import bootstrap, delta_method, resampled, student
from moelaws.fitting.quantiles import jackknife, least_squares, t_interval
from moelaws.laws.base import FitProtocol

X = np.vander(np.linspace(-1, 1, 7), 3)
Y = X @ [0.3, -0.2, 2.0] + 0.05 * np.random.default_rng(1).standard_normal(7)


def _textbook(x, y, w=None):
    """Least-squares estimates, their covariance and the degrees of freedom."""
    w = np.ones_like(x) if w is None else w
    X = np.stack([np.ones_like(x), x, x**2], axis=1)
    inverse = np.linalg.inv(X.T @ (w[:, None] * X))
    estimate = inverse @ X.T @ (w * y)
    freedom = len(x) - 3
    return estimate, inverse * (w * (y - X @ estimate) ** 2).sum() / freedom, freedom


def _covariance(task, solution):
    """The delta method's covariance of the working-scale parameters."""
    of_phi = delta_method(task, solution.path[-1], solution.phi, solution.certificate.at_bound)
    M = np.stack([task.working(e) for e in np.eye(len(solution.phi))], axis=1)
    return M @ of_phi @ M.T


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_intervals_are_the_textbooks(parabola, weighted):
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(-1, 2, 12))
    se = rng.uniform(0.1, 0.5, 12)
    y = 1 - 2 * x + 0.5 * x**2 + se * rng.standard_normal(12)
    table = pd.DataFrame({"x": x, "y": y, "se": se})
    group = fitted_group(parabola, table, level=0.8, weights="se" if weighted else "")
    w = np.mean(se**-2.0) ** -1 / se**2 if weighted else None
    estimate, covariance, freedom = _textbook(x, y, w)
    reach = student_t.ppf(0.9, freedom) * np.sqrt(np.diag(covariance))
    for i, name in enumerate(parabola.names):
        assert group.params[name].estimate == pytest.approx(estimate[i], rel=1e-9)
        exact = group.delta_method[name]
        assert exact["se"] == pytest.approx(np.sqrt(covariance[i, i]), rel=1e-9)
        assert exact["low"] == pytest.approx(estimate[i] - reach[i], rel=1e-8)
        assert exact["high"] == pytest.approx(estimate[i] + reach[i], rel=1e-8)
        # The draws are 1,000: their percentiles are off by 5 % of the reach or so.
        assert group.params[name].low == pytest.approx(estimate[i] - reach[i], abs=0.2 * reach[i])
        assert group.params[name].high == pytest.approx(estimate[i] + reach[i], abs=0.2 * reach[i])
    assert group.intervals.startswith("Student-t")


def test_whole_blocks_are_drawn():
    groups = np.array([0, 0, 1, 2, 2, 2, 3])
    counts = resampled(7, groups, 4000, np.random.default_rng(0))
    for block in range(4):
        own = counts[:, groups == block]
        assert (own == own[:, :1]).all()
    per_block = counts[:, [0, 2, 3, 6]]
    assert (per_block.sum(axis=1) == 4).all()
    assert per_block.mean(axis=0) == pytest.approx(1, abs=0.06)
    assert per_block.var(axis=0) == pytest.approx(0.75, abs=0.08)  # multinomial: 1 - 1/4
    rows = resampled(7, None, 4000, np.random.default_rng(0))
    assert (rows.sum(axis=1) == 7).all()
    assert rows.var(axis=0) == pytest.approx(6 / 7, abs=0.08)


def test_bootstrap_of_least_squares_is_least_squares_of_each_resample(parabola, solved):
    x = np.linspace(-1, 2, 30)
    y = 1 - 2 * x + 0.5 * x**2 + 0.3 * np.random.default_rng(4).standard_normal(30)
    task, solution = solved(parabola, {"x": x}, y)
    draws = task.working(bootstrap(task, solution, None, 40, seed=9))
    counts = resampled(30, None, 40, np.random.default_rng(9))
    for draw, count in zip(draws, counts, strict=True):
        assert draw == pytest.approx(_textbook(x, y, count)[0], rel=1e-6, abs=1e-9)


def test_delta_method_of_a_wide_huber_is_the_sandwich(parabola, solved):
    """With a threshold that most rows are within, written out by its textbook formula."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 2, 4000)
    y = 1 - 2 * x + 0.5 * x**2 + rng.standard_t(3, 4000)
    task, solution = solved(parabola, {"x": x}, y, objective="huber", delta=1.345)
    X = np.stack([np.ones_like(x), x, x**2], axis=1)
    r = y - X @ task.working(solution.phi)
    # Huber 1981: errors of one distribution, E psi^2 / (E psi')^2 (X'X)^-1.
    psi = np.clip(r, -1.345, 1.345)
    scale = (psi**2).mean() / (np.abs(r) <= 1.345).mean() ** 2
    expected = np.linalg.inv(X.T @ X) * scale
    assert np.diag(_covariance(task, solution)) == pytest.approx(np.diag(expected), rel=0.08)


def test_draws_stay_within_bounds(dense, solved):
    law, table = laws.fittable("chinchilla"), dense(noise=0.2, sizes=4, tokens=3)
    by_rows = bootstrap(*solved(law, table, table["L"], sample=30), None, 60, seed=0)
    squared = solved(law, table, table["L"], sample=30, objective="squared")
    for draws in (by_rows, student(*squared, 1000, seed=0)):
        assert ((draws >= law.bounds[:, 0]) & (draws <= law.bounds[:, 1])).all()


def test_leaving_groups_out_gives_a_mean_the_interval_of_the_groups_means():
    """For equal groups the jackknife of a mean is exact, whatever is common to a group."""
    rng = np.random.default_rng(0)
    groups = rng.normal(0, 1, (6, 1)) + rng.normal(0, 0.1, (6, 10))
    left_out = [np.delete(groups, g, axis=0).mean() for g in range(6)]
    low, high = jackknife(np.array([groups.mean()]), np.array(left_out)[:, None], 0.9)
    theirs = ttest_1samp(groups.mean(axis=1), 0).confidence_interval(0.9)
    assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high))
    assert np.isnan(t_interval(1.0, 0.1, 0, 0.9)).all()  # no degree of freedom


def test_quantiles_of_the_draws_are_the_textbooks_intervals():
    fitted, *draws = least_squares(X, Y, draws=200_000)
    residual = Y - X @ fitted
    assert X.T @ residual == pytest.approx(np.zeros(3), abs=1e-12)
    error = np.sqrt(residual @ residual / 4 * np.diag(np.linalg.inv(X.T @ X)))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    reach = student_t.ppf(0.95, 4) * error
    assert low == pytest.approx(fitted - reach, abs=0.02 * reach.max())
    assert high == pytest.approx(fitted + reach, abs=0.02 * reach.max())


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
    assert within[0, 0] == pytest.approx(whole[0, 0])
    tails = [0.05, 0.5, 0.95]
    expected = np.quantile(whole[1:, 0], tails)
    assert np.quantile(within[1:, 0], tails) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("seed", "level"), [(0, 0.68), (1, 0.9)])
def test_a_slope_with_laplace_noise(parabola, seed, level):
    """Laplace: with sigma at its best, twice the fall is 2 n ln(sum |r| / least sum |r|)."""
    protocol = FitProtocol(objective="absolute")
    line = dataclasses.replace(parabola, parameters=parabola.parameters[:2], protocol=protocol)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 2, 200)
    y = 1 - 2 * x + 0.3 * rng.laplace(size=200)
    table = pd.DataFrame({"x": x, "y": y})
    group = fitted_group(line, table, profile=["p1"], bootstrap=2, level=level)
    profile = group.profile["p1"]

    def total(slope):
        """With the best intercept at this slope, which is a median."""
        r = y - slope * x
        return np.abs(r - np.median(r)).sum()

    slopes = np.linspace(-2.5, -1.5, 4001)
    totals = np.array([total(s) for s in slopes])
    best = slopes[totals.argmin()]

    def beyond(slope):
        return 200 * np.log(total(slope) / totals.min()) - chi2.ppf(level, 1) / 2

    low, high = brentq(beyond, -2.5, best), brentq(beyond, best, -1.5)
    assert profile.estimate == pytest.approx(best, abs=1e-3)
    assert profile.low == pytest.approx(low, abs=0.05 * (high - low))
    assert profile.high == pytest.approx(high, abs=0.05 * (high - low))
    for slope, nll in profile.curve:
        exact = 200 * (np.log(2 * total(slope) / 200) + 1)
        assert nll == pytest.approx(exact, abs=2e-3)


def test_a_term_that_vanished_is_not_held_below(dense):
    """Losses without an irreducible part: E may be as small as it likes."""
    law = laws.fittable("chinchilla")
    table = dense(noise=0.0, sizes=8, tokens=8)
    errors = 0.01 * np.random.default_rng(0).standard_normal(len(table))
    table["L"] = (table["L"] - 0.9999 * law.published["E"]) * np.exp(errors)
    fields = {"profile": ["E", "alpha"], "protocol": {"sample": 40}, "bootstrap": 2}
    profiles = fitted_group(law, table, **fields).profile
    assert profiles["E"].low is None
    assert profiles["E"].high < 0.5
    assert profiles["alpha"].low < law.published["alpha"] < profiles["alpha"].high


def test_a_parameter_at_its_bound_has_no_spread(dense, solved):
    law, table = laws.fittable("chinchilla"), dense(noise=0.0)
    without = table["L"] - 0.9999 * law.published["E"]
    rng = np.random.default_rng(0)
    losses = without * np.exp(0.01 * rng.standard_normal(180))
    task, solution = solved(law, table, losses, sample=60)
    assert solution.certificate.at_bound.tolist() == [False, False, True, False, False]
    se = np.sqrt(np.diag(_covariance(task, solution)))
    assert se[2] == 0
    assert (se[[0, 1, 3, 4]] > 0).all()


def test_an_exact_fit_says_nothing_of_its_errors():
    (fitted,) = least_squares(X[:3], Y[:3])
    assert X[:3] @ fitted == pytest.approx(Y[:3])
