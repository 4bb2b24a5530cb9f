"""Derivatives of a sum of power laws against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.objective import HuberSum

ALL = np.array([True])


def _case(law_id, seed):
    law = laws.get(law_id)
    rng = np.random.default_rng(seed)
    columns = {
        "N": 10 ** rng.uniform(7, 10, 12),
        "D": 10 ** rng.uniform(9, 12, 12),
        "S": rng.uniform(0, 0.98, 12),
    }
    theta = law.vector(law.published) + rng.normal(0, 0.1, len(law.names))
    return law, law.design(columns), theta


@pytest.mark.parametrize("law_id", ["chinchilla", "sparsity.loss"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_jacobian_is_the_derivative_of_ln_prediction(law_id, seed):
    _, design, theta = _case(law_id, seed)
    _, share = design.evaluate(theta[None])
    assert share.sum(axis=1) == pytest.approx(np.ones((1, design.n)))
    h = 1e-5
    steps = h * np.eye(len(theta))
    up, down = design.evaluate(theta + steps)[0], design.evaluate(theta - steps)[0]
    assert design.jacobian(share)[0] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("law_id", ["chinchilla", "sparsity.loss"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_gradient_and_hessian_are_derivatives_of_the_objective(law_id, seed):
    _, design, theta = _case(law_id, seed)
    rng = np.random.default_rng(seed)
    # Residuals on both sides of the threshold, none within reach of a finite step.
    size = np.where(np.arange(design.n) % 2, 0.05, 0.01)
    ln_L = design.evaluate(theta[None])[0][0] + size * rng.choice([-1, 1], design.n)
    objective = HuberSum(design, ln_L, delta=0.03, weights=rng.random(design.n))
    h = 1e-6
    steps = h * np.eye(len(theta))
    _, gradient, hessian, _ = objective.derivatives(theta[None], ALL)
    slope = (objective.value(theta + steps) - objective.value(theta - steps)) / (2 * h)
    assert gradient[0] == pytest.approx(slope, rel=1e-4, abs=1e-7)
    everywhere = np.ones(len(theta), bool)
    up = objective.derivatives(theta + steps, everywhere)[1]
    down = objective.derivatives(theta - steps, everywhere)[1]
    scale = np.abs(hessian).max()
    assert hessian[0] == pytest.approx((up - down) / (2 * h), rel=1e-3, abs=1e-4 * scale)


def test_a_vanished_term_is_nothing_and_costs_no_nan():
    law = laws.get("chinchilla")
    theta = law.vector(law.published | {"A": 1e-3, "alpha": 4.0})
    design = law.design({"N": np.full(3, 1e30), "D": np.array([1e9, 1e10, 1e11])})
    ln_L, share = design.evaluate(theta[None])
    without = law.published["B"] / np.array([1e9, 1e10, 1e11]) ** law.published["beta"]
    assert np.exp(ln_L[0]) == pytest.approx(without + law.published["E"], rel=1e-12)
    assert (share[0, 0] < 1e-100).all()
