"""Intervals mean what they say: textbook Student's t, whole blocks, coverage, delta method."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted_part
from scipy.stats import binom
from scipy.stats import t as student_t

from moelaws import laws
from moelaws.fitting import intervals
from moelaws.fitting.intervals import bootstrap, delta_method, resampled, student
from moelaws.fitting.quantiles import percentiles


def _line_of_optima(parabola, solved, n, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    x = np.linspace(-1, 2, n)
    y = 1 - 2 * x + 0.5 * x**2 + noise * rng.standard_normal(n)
    return x, y, *solved(parabola, {"x": x}, y)


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
    part = fitted_part(parabola, table, level=0.8, weights="se" if weighted else "")
    w = np.mean(se**-2.0) ** -1 / se**2 if weighted else None
    estimate, covariance, freedom = _textbook(x, y, w)
    reach = student_t.ppf(0.9, freedom) * np.sqrt(np.diag(covariance))
    for i, name in enumerate(parabola.names):
        assert part.params[name].estimate == pytest.approx(estimate[i], rel=1e-9)
        exact = part.delta_method[name]
        assert exact["se"] == pytest.approx(np.sqrt(covariance[i, i]), rel=1e-9)
        assert exact["low"] == pytest.approx(estimate[i] - reach[i], rel=1e-8)
        assert exact["high"] == pytest.approx(estimate[i] + reach[i], rel=1e-8)
        # The draws are 1,000: their percentiles are off by 5 % of the reach or so.
        assert part.params[name].low == pytest.approx(estimate[i] - reach[i], abs=0.2 * reach[i])
        assert part.params[name].high == pytest.approx(estimate[i] + reach[i], abs=0.2 * reach[i])
    assert part.intervals.startswith("Student-t")


@pytest.mark.parametrize("n", [4, 6])
def test_coverage_with_a_handful_of_rows(parabola, solved, n):
    """200 tables: 90 % intervals hold the truth in 90 % of them, whatever few rows there are."""
    truth, covered, tables = np.array([1.0, -2.0, 0.5]), np.zeros(3), 200
    for seed in range(tables):
        _, _, task, solution = _line_of_optima(parabola, solved, n, seed)
        low, high = percentiles(task.working(student(task, solution, 400, seed)), 0.9)
        covered += (low <= truth) & (truth <= high)
    least, most = binom.ppf([0.001, 0.999], tables, 0.9)
    assert (covered >= least).all()
    assert (covered <= most + 3).all()  # 400 draws leave some width to chance


def test_no_freedom_gives_no_interval(parabola, solved):
    _, _, task, solution = _line_of_optima(parabola, solved, 3, seed=0)
    assert solution.value == pytest.approx(0, abs=1e-20)
    assert student(task, solution, 100, seed=0).shape == (0, 3)
    assert np.isnan(percentiles(np.empty((0, 3)), 0.9)).all()


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


def test_blocks_widen_intervals_where_rows_of_a_block_err_together(parabola, solved):
    """Ten blocks with an error in common each, and next to none of each row's own."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 8)
    x = np.tile(np.linspace(-1, 2, 8), 10)
    y = 1 - 2 * x + 0.5 * x**2 + np.repeat(0.3 * rng.standard_normal(10), 8)
    task, solution = solved(parabola, {"x": x}, y + 0.01 * rng.standard_normal(80))
    by_block, by_row = (
        task.working(bootstrap(task, solution, g, 500, seed=1))[:, 0].std() for g in (groups, None)
    )
    block_means = np.array([y[groups == b].mean() for b in range(10)])
    expected = block_means.std(ddof=0) / np.sqrt(10)
    assert by_block == pytest.approx(expected, rel=0.15)
    assert by_block > 1.5 * by_row


def test_bootstrap_of_least_squares_is_least_squares_of_each_resample(parabola, solved):
    x, y, task, solution = _line_of_optima(parabola, solved, 30, seed=4)
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


@pytest.mark.parametrize("seed", [0, 1])
def test_delta_method_comes_near_the_bootstrap_for_equal_errors(dense, solved, seed):
    """180 rows, ln L by sum-Huber(1e-3): medians in effect, whose density is read from a band."""
    law, table = laws.fittable("chinchilla"), dense(seed=seed)
    task, solution = solved(law, table, table["L"], sample=60)
    draws = bootstrap(task, solution, None, 400, seed=0)
    low, high = np.quantile(draws, [0.159, 0.841], axis=0)
    se = np.sqrt(np.diag(_covariance(task, solution)))
    assert (high - low) / 2 == pytest.approx(se, rel=0.35)


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


def test_draws_stay_within_bounds(dense, solved):
    law, table = laws.fittable("chinchilla"), dense(noise=0.2, sizes=4, tokens=3)
    task, solution = solved(law, table, table["L"], sample=30)
    draws = bootstrap(task, solution, None, 60, seed=0)
    assert ((draws >= law.bounds[:, 0]) & (draws <= law.bounds[:, 1])).all()
    task, solution = solved(law, table, table["L"], sample=30, objective="squared")
    draws = student(task, solution, 1000, seed=0)
    assert ((draws >= law.bounds[:, 0]) & (draws <= law.bounds[:, 1])).all()


def test_of_few_blocks_each_resample_is_refitted_once(parabola, solved, monkeypatch):
    """Three blocks make ten resamples: 300 draws are what 300 refits would be."""
    groups = np.repeat([0, 1, 2], 8)
    _, _, task, solution = _line_of_optima(parabola, solved, 24, seed=3)
    refits = []

    def counted(problem, solution, counts, refitted=intervals._refitted):
        refits.append(len(counts))
        return refitted(problem, solution, counts)

    monkeypatch.setattr(intervals, "_refitted", counted)
    each = bootstrap(task, solution, groups, 10, seed=9)
    assert sum(refits) == 10
    refits.clear()
    draws = bootstrap(task, solution, groups, 300, seed=9)
    assert sum(refits) == 10
    np.testing.assert_allclose(draws[:10], each, rtol=1e-9, atol=1e-9)
    assert len(np.unique(draws.round(9), axis=0)) == 10
