"""Each objective: its value by an independent formula, its derivatives, its minimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import huber
from scipy.stats import norm

from moelaws import laws
from moelaws.fitting.objective import Objective, sigma_huber
from moelaws.laws.forms import LinearModel

KINDS = {"huber": (0.03, 1.0), "squared": (np.inf, 2.0), "absolute": (1e-8, 1e8)}
ALL = np.array([True])
seeds = st.integers(0, 10_000)


def _case(kind, law_id, seed):
    """An objective and a vector with residuals within and beyond 0.03, none near a kink."""
    law = laws.fittable(law_id)
    rng = np.random.default_rng(seed)
    columns = {
        "N": 10 ** rng.uniform(7, 10, 12),
        "D": 10 ** rng.uniform(9, 12, 12),
        "S": rng.uniform(0, 0.98, 12),
    }
    theta = law.vector(law.published) + rng.normal(0, 0.1, len(law.names))
    model = law.model(columns)
    size = np.where(np.arange(model.n) % 2, 0.05, 0.01) * rng.choice([-1, 1], model.n)
    delta, unit = KINDS[kind]
    observed = model.evaluate(theta[None])[0][0] + size
    return Objective(model, observed, delta, rng.random(model.n), unit), theta


@settings(max_examples=25)
@given(seed=seeds)
def test_values_are_the_sums_that_they_are_named_after(seed):
    sums = {
        "huber": lambda r, w: (w * huber(0.03, r)).sum(),
        "squared": lambda r, w: (w * r**2).sum(),
        "absolute": lambda r, w: (w * np.abs(r)).sum(),
    }
    for kind, expected in sums.items():
        objective, theta = _case(kind, "chinchilla", seed)
        r, w = objective.evaluate(theta[None]).residual[0], objective.weights[0]
        assert objective.value(theta[None])[0] == pytest.approx(expected(r, w), rel=1e-6)


@pytest.mark.parametrize("law_id", ["chinchilla", "sparsity.loss"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(seed=seeds)
def test_gradient_and_hessian_are_derivatives_of_the_value(law_id, kind, seed):
    objective, theta = _case(kind, law_id, seed)
    h = 1e-6
    steps = h * np.eye(len(theta))
    value, gradient, hessian, *_ = objective.derivatives(theta[None], ALL)
    assert value == pytest.approx(objective.value(theta[None]), rel=1e-12)
    slope = (objective.value(theta + steps) - objective.value(theta - steps)) / (2 * h)
    assert gradient[0] == pytest.approx(slope, rel=1e-4, abs=1e-7 * max(1, np.abs(slope).max()))
    everywhere = np.ones(len(theta), bool)
    up = objective.derivatives(theta + steps, everywhere)[1]
    down = objective.derivatives(theta - steps, everywhere)[1]
    scale = np.abs(hessian).max()
    assert hessian[0] == pytest.approx((up - down) / (2 * h), rel=1e-3, abs=1e-4 * scale)


def _rows(seed, n=40):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 3, n)
    y = 2 - x + 0.5 * x**2 + 0.3 * rng.standard_t(2, n)
    weights = rng.uniform(0.2, 2, n)
    return x, y, weights / weights.mean()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_absolute_is_a_linear_program(parabola, solved, seed, weighted):
    """Least absolute deviations: y - Xb = u - v, u and v >= 0, min sum w (u + v)."""
    x, y, w = _rows(seed)
    w = w if weighted else np.ones(len(x))
    task, solution = solved(
        parabola, {"x": x}, y, w if weighted else None, objective="absolute", delta=1e-3
    )
    X, n = np.stack([np.ones_like(x), x, x**2], axis=1), len(x)
    program = linprog(
        np.concatenate([np.zeros(3), w, w]),
        A_eq=np.hstack([X, np.eye(n), -np.eye(n)]),
        b_eq=y,
        bounds=[(None, None)] * 3 + [(0, None)] * (2 * n),
    )
    assert solution.value == pytest.approx(program.fun, rel=1e-7)
    assert task.working(solution.phi) == pytest.approx(program.x[:3], abs=1e-5)
    assert solution.certificate.converged


@pytest.mark.parametrize("delta", [1e-3, 1.0])
def test_the_likelihood_is_the_least_over_its_scale(delta):
    r, w = np.random.default_rng(6).laplace(0, 0.02, 30), np.linspace(0.5, 1.5, 30)
    normaliser = np.log(
        np.sqrt(2 * np.pi) * (norm.cdf(delta) - norm.cdf(-delta))
        + 2 * np.exp(-(delta**2) / 2) / delta
    )
    ln_sigma = np.linspace(-14, 2, 200_001)[:, None]
    losses = np.sum(w * huber(delta, r / np.exp(ln_sigma)), axis=1)
    expected = (losses + len(r) * (ln_sigma[:, 0] + normaliser)).min()
    assert sigma_huber(r, delta, w) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("objective", ["squared", "huber", "absolute"])
def test_a_perfect_fit_is_certified_in_any_unit(parabola, solved, objective):
    x, _, _ = _rows(0)
    for unit in (1e-6, 1.0, 1e6, 1e12):
        _, solution = solved(parabola, {"x": x}, unit * (1 + 2 * x - x**2), objective=objective)
        assert solution.certificate.converged


def test_a_flat_optimum_of_absolute_values_is_certified(solved):
    """Two losses at each of two budgets: every line that passes between them is as good."""
    law = laws.fittable("leverage.allocation:M")
    columns = {"C": np.array([1e18, 1e18, 1e20, 1e20])}
    response = np.array([1e8, 1.1e8, 1e9, 1.2e9])
    _, solution = solved(law, columns, response, objective="absolute")
    assert solution.value == pytest.approx(np.log(1.1) + np.log(1.2), rel=1e-6)
    assert solution.certificate.converged
    assert solution.certificate.decrease == 0


@settings(max_examples=25)
@given(seed=seeds, delta=st.sampled_from([1e-3, 0.1, 1.0, np.inf]))
def test_the_majoriser_touches_a_linear_law_from_above(seed, delta):
    """f(x + s) <= f(x) + g s + s'As/2 for every step: why a step along it cannot ascend."""
    rng = np.random.default_rng(seed)
    objective = Objective(LinearModel(rng.normal(size=(20, 3))), rng.normal(size=20), delta)
    x, steps = rng.normal(size=3), rng.normal(size=(50, 3)) * 10 ** rng.uniform(-4, 1, (50, 1))
    f, g, A = (array[0] for array in objective.derivatives(x[None], ~ALL)[:3])
    bound = f + steps @ g + 0.5 * np.einsum("bp,pq,bq->b", steps, A, steps)
    assert (objective.value(x + steps) <= bound + 1e-12 * np.abs(bound)).all()
