"""A sum of power laws where a term is too small for its share to be a number."""

import numpy as np
import pytest

from moelaws import laws


def test_a_vanished_term_is_nothing_and_costs_no_nan():
    law = laws.get("chinchilla")
    theta = law.vector(law.published | {"A": 1e-3, "alpha": 4.0})
    model = law.model({"N": np.full(3, 1e30), "D": np.array([1e9, 1e10, 1e11])})
    ln_L, (share,) = model.evaluate(theta[None])
    without = law.published["B"] / np.array([1e9, 1e10, 1e11]) ** law.published["beta"]
    assert np.exp(ln_L[0]) == pytest.approx(without + law.published["E"], rel=1e-12)
    assert (share[0, 0] < 1e-100).all()
    assert np.isfinite(model.curvature((share,), np.ones((1, 3)))).all()
