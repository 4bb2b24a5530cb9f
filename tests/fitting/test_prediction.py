"""Predictions with intervals: the textbook's for a linear law, and coverage for others."""

import numpy as np
import pytest
from fitting_case import fitted
from scipy.stats import binom
from scipy.stats import t as student_t

from moelaws import laws
from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.goodness import describe
from moelaws.fitting.intervals import student
from moelaws.fitting.prediction import predict


def test_a_linear_laws_intervals_are_the_textbooks(parabola, solved):
    rng = np.random.default_rng(3)
    n, level = 15, 0.9
    x = np.sort(rng.uniform(-1, 2, n))
    y = 1 - 2 * x + 0.5 * x**2 + 0.3 * rng.standard_normal(n)
    task, solution = solved(parabola, {"x": x}, y)
    theta = task.working(solution.phi)
    X = np.stack([np.ones(n), x, x**2], axis=1)
    residual = y - X @ theta
    at = np.array([-2.0, 0.0, 1.5, 4.0])  # two of them far outside
    got = predict(
        parabola,
        dict(zip(parabola.names, theta, strict=True)),
        task.working(student(task, solution, 20_000, seed=0)),
        describe(residual, 3, None, True),
        {"x": at},
        level,
    )
    Q = np.stack([np.ones(4), at, at**2], axis=1)
    variance = residual @ residual / (n - 3)
    of_mean = variance * np.einsum("qi,ij,qj->q", Q, np.linalg.inv(X.T @ X), Q)
    t = student_t.ppf((1 + level) / 2, n - 3)
    reach, new_reach = t * np.sqrt(of_mean), t * np.sqrt(of_mean + variance)
    assert got.value == pytest.approx(Q @ theta)
    for bound, expected in ((got.low, got.value - reach), (got.high, got.value + reach)):
        assert np.abs(bound - expected).max() <= 0.03 * reach.max()
        assert (np.abs(bound - expected) <= 0.04 * reach).all()
    assert (np.abs(got.new_low - (got.value - new_reach)) <= 0.05 * new_reach).all()
    assert (np.abs(got.new_high - (got.value + new_reach)) <= 0.05 * new_reach).all()


def _at(law, part, report, columns, level=0.9):
    draws = report.draws[list(law.names)].to_numpy()
    return predict(law, part.estimates(), draws, part.residuals, columns, level)


def test_the_dense_laws_intervals_hold_the_truth_and_new_losses(dense):
    """30 tables, at 12 places inside; coverage allows for what few tables and draws can say."""
    law = laws.fittable("chinchilla")
    rng = np.random.default_rng(0)
    places = {"N": 10 ** rng.uniform(8, 9.9, 12), "D": 10 ** rng.uniform(9.2, 11.3, 12)}
    truth = law.predict(law.published, places)
    of_mean = of_new = 0
    for seed in range(30):
        table = dense(seed=seed, sizes=9, tokens=8)
        report = fitted(law, table, bootstrap=100, protocol={"grid": _near(law.published)})
        got = _at(law, report.parts[0], report, places)
        assert (got.new_low < got.low).all()
        assert (got.high < got.new_high).all()
        of_mean += ((got.low <= truth) & (truth <= got.high)).sum()
        new = truth * np.exp(0.01 * rng.standard_normal(12))
        of_new += ((got.new_low <= new) & (new <= got.new_high)).sum()
    # Places of one table err together: some 3 of 12 are worth one that errs on its own.
    assert of_mean / 360 == pytest.approx(0.9, abs=0.11)
    least, most = binom.ppf([1e-4, 1 - 1e-4], 360, 0.9)
    assert least - 8 <= of_new <= most + 8


def _near(published):
    """A few starts about the truth: what is tested here is the interval, not the search."""
    return {name: [np.log(value) if name in "ABE" else value] for name, value in published.items()}


def test_one_number_without_draws_has_no_interval(dense):
    law = laws.fittable("chinchilla")
    residuals = Residuals()
    none = predict(law, law.published, np.empty((0, 5)), residuals, {"N": 1e9, "D": 1e10}, 0.9)
    assert none.value.shape == (1,)
    for bound in (none.low, none.high, none.new_low, none.new_high):
        assert np.isnan(bound).all()
    draws = np.tile(list(law.published.values()), (3, 1))[:, [0, 1, 2, 3, 4]]
    known = predict(law, law.published, draws, residuals, {"N": 1e9, "D": 1e10}, 0.9)
    assert known.low == pytest.approx(known.value)
    assert np.isnan(known.new_low).all()
