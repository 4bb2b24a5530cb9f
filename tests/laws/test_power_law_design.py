"""Derivatives of a sum of power laws against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws import laws

SUMS = ["chinchilla", "sparsity.loss"]


def _case(law_id, seed):
    law = laws.get(law_id)
    rng = np.random.default_rng(seed)
    columns = {
        "N": 10 ** rng.uniform(7, 10, 12),
        "D": 10 ** rng.uniform(9, 12, 12),
        "S": rng.uniform(0, 0.98, 12),
    }
    theta = law.vector(law.published) + rng.normal(0, 0.1, len(law.names))
    return law.model(columns), theta, rng


@pytest.mark.parametrize("law_id", SUMS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_jacobian_is_the_derivative_of_ln_prediction(law_id, seed):
    model, theta, _ = _case(law_id, seed)
    _, share = model.evaluate(theta[None])
    assert share.sum(axis=1) == pytest.approx(np.ones((1, model.n)))
    h = 1e-5
    steps = h * np.eye(len(theta))
    up, down = model.evaluate(theta + steps)[0], model.evaluate(theta - steps)[0]
    assert model.jacobian(share)[0] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("law_id", SUMS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_curvature_is_the_derivative_of_the_jacobian(law_id, seed):
    model, theta, rng = _case(law_id, seed)
    psi = rng.normal(size=(1, model.n))
    curvature = model.curvature(model.evaluate(theta[None])[1], psi)[0]
    h = 1e-5
    steps = h * np.eye(len(theta))
    up, down = (model.jacobian(model.evaluate(theta + s)[1]) @ psi[0] for s in (steps, -steps))
    scale = np.abs(curvature).max()
    assert curvature == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-7 * scale)


@pytest.mark.parametrize("law_id", SUMS)
def test_some_of_the_rows_are_those_rows(law_id):
    model, theta, rng = _case(law_id, 0)
    index = np.array([7, 2, 2, 11])
    psi = rng.normal(size=(1, 4))
    some = model.rows(index)
    value, share = model.evaluate(theta[None])
    assert some.evaluate(theta[None])[0] == pytest.approx(value[:, index], rel=1e-14)
    of_some = some.evaluate(theta[None])[1]
    assert some.jacobian(of_some) == pytest.approx(model.jacobian(share)[:, :, index], rel=1e-13)
    everywhere = np.zeros((1, model.n))
    np.add.at(everywhere[0], index, psi[0])
    scale = np.abs(model.curvature(share, everywhere)).max()
    assert some.curvature(of_some, psi) == pytest.approx(
        model.curvature(share, everywhere), abs=1e-11 * scale
    )


def test_a_vanished_term_is_nothing_and_costs_no_nan():
    law = laws.get("chinchilla")
    theta = law.vector(law.published | {"A": 1e-3, "alpha": 4.0})
    model = law.model({"N": np.full(3, 1e30), "D": np.array([1e9, 1e10, 1e11])})
    ln_L, share = model.evaluate(theta[None])
    without = law.published["B"] / np.array([1e9, 1e10, 1e11]) ** law.published["beta"]
    assert np.exp(ln_L[0]) == pytest.approx(without + law.published["E"], rel=1e-12)
    assert (share[0, 0] < 1e-100).all()
    assert np.isfinite(model.curvature(share, np.ones((1, 3)))).all()
