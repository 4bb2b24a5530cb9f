"""Predictions with intervals, and whether fitted rows surround them, as Delaunay says."""

import dataclasses
import json

import numpy as np
import pytest
from fitting_case import fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay
from scipy.stats import t as student_t

from moelaws import laws
from moelaws.fitting.diagnostics import Diagnostics, Support
from moelaws.fitting.errors import describe
from moelaws.fitting.intervals import student
from moelaws.fitting.prediction import beyond_ranges, outside, predict, support_of
from moelaws.fitting.report import Estimate, GroupFit
from moelaws.laws.base import NOT_NEGATIVE, POSITIVE, SPARSITY, Variable


def group_of(params, residuals):
    """A fit with these estimates, of which nothing else is read."""
    estimates = {name: Estimate(value, None, None) for name, value in params.items()}
    known = Diagnostics(0, "huber", 1e-3, 0.0, None)
    return GroupFit({}, 15, 0.0, True, estimates, {}, None, known, residuals=residuals)


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
        group_of(dict(zip(parabola.names, theta, strict=True)), describe(residual, 3, None, True)),
        task.working(student(task, solution, 20_000, seed=0)),
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


def test_least_squares_predicts_to_first_order_where_the_law_bends(dense):
    """Against the textbook's interval, with slopes by differences: draws of t would be skewed."""
    law, table = laws.fittable("chinchilla"), dense(noise=0.003).iloc[::5]
    fields = {"protocol": {"objective": "squared", "sample": 60}, "resample_by": "rows"}
    report = fitted(law, table, **fields)
    group = dataclasses.replace(report.parts[0], calibration=None)  # which is wider beyond the rows
    at = {"N": np.array([3e7, 1e9, 1e11]), "D": np.array([1e8, 2e10, 3e12])}
    rows = {name: table[name].to_numpy() for name in "ND"}
    theta = law.vector(group.estimates())

    def slopes(columns):
        steps = np.concatenate([theta + 1e-5 * np.eye(5), theta - 1e-5 * np.eye(5)])
        above, below = np.split(np.log(law.predict_batch(steps, columns)), 2)
        return (above - below) / 2e-5

    J, Q, freedom = slopes(rows), slopes(at), len(table) - 5
    residual = np.log(table["L"].to_numpy() / law.predict(group.estimates(), rows))
    covariance = np.linalg.inv(J @ J.T) * (residual @ residual) / freedom
    reach = student_t.ppf(0.95, freedom) * np.sqrt(np.einsum("pq,pr,rq->q", Q, covariance, Q))
    got = predict(law, group, report.draws[list(law.names)].to_numpy(), at, 0.9)
    for end, expected in ((got.low, -reach), (got.high, reach)):
        assert np.log(end / got.value) == pytest.approx(expected, rel=0.15)


SIZE = laws.fittable("chinchilla")  # N and D, each on its logarithm


def _columns(law, points):
    """Columns whose own scale is ``points`` (n, V)."""
    back = {SPARSITY: lambda x: -np.expm1(-x), NOT_NEGATIVE: lambda x: x, POSITIVE: np.exp}
    return {v.name: back[v.domain](points[:, i]) for i, v in enumerate(law.variables)}


@pytest.mark.parametrize(
    "domains", [(POSITIVE, POSITIVE), (POSITIVE, SPARSITY, POSITIVE), (NOT_NEGATIVE, SPARSITY)]
)
@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_random_clouds(domains, seed):
    variables = tuple(Variable(f"x{i}", "1", "", domain) for i, domain in enumerate(domains))
    law = dataclasses.replace(SIZE, variables=variables)
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.1, 3, (25, len(domains)))
    queries = rng.uniform(0, 3.2, (300, len(domains)))
    support = Support(**json.loads(json.dumps(vars(support_of(law, _columns(law, points))))))
    cloud, centre = Delaunay(points), points.mean(axis=0)
    beyond, out, into = (
        cloud.find_simplex(centre + factor * (queries - centre)) < 0
        for factor in (1, 1 + 1e-4, 1 - 1e-4)
    )
    clear = (out == beyond) & (into == beyond)  # not within rounding of the hull itself
    assert clear.mean() > 0.9
    assert (outside(law, support, _columns(law, queries)) == beyond)[clear].all()


def test_rows_of_one_budget_lie_in_a_plane():
    """D = C / (6 N): what is off the budget is outside, whatever its N and D."""
    N = np.geomspace(1e8, 1e10, 9)
    support = support_of(SIZE, {"N": N, "D": 1e20 / (6 * N)})
    query = np.array([1e8, 7e8, 1e10, 2e10])
    on = outside(SIZE, support, {"N": query, "D": 1e20 / (6 * query)})
    assert on.tolist() == [False, False, False, True]
    off = outside(SIZE, support, {"N": query, "D": 1.1e20 / (6 * query)})
    assert off.all()


def test_a_corner_that_no_row_is_near_is_outside_though_in_every_range():
    """A large sparse model on little data: within each range, and in no corner of the rows."""
    rng = np.random.default_rng(0)
    ln_N = rng.uniform(18, 23, 60)
    support = support_of(SIZE, {"N": np.exp(ln_N), "D": np.exp(ln_N + rng.uniform(1, 3, 60))})
    corner = {"N": np.exp(22.5), "D": np.exp(20.5)}
    assert beyond_ranges(support, corner) == []
    assert outside(SIZE, support, corner).all()
    assert beyond_ranges(support, {"N": 1e12}) == [
        f"N = 1e+12 is outside the {support.ranges['N'][0]:.6g} to "
        f"{support.ranges['N'][1]:.6g} of the fitted rows"
    ]
