"""Loss curves over compute and Algorithm 1 of the leverage paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.studies.leverage.laws.curve import efficiency_leverage

LAW = laws.get("leverage.curve")
DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}
MOE = {"alpha": 58.0, "beta": -0.0865, "b": 1.58}


def test_algorithm_1():
    leverage = efficiency_leverage(DENSE, MOE, 1e20)
    assert pytest.approx(2.6600105392644635, rel=1e-6) == leverage.L
    assert pytest.approx(4.1846545558175805, rel=1e-6) == leverage.EL
    assert leverage.C_dense == pytest.approx(4.1846545558175805e20, rel=1e-6)


def test_leverage_is_undefined_where_the_dense_curve_never_gets_there():
    deep = MOE | {"b": 1.0}
    leverage = efficiency_leverage(DENSE, deep, [1e18, 1e20, 1e24])
    L = LAW.predict(deep, {"C": [1e18, 1e20, 1e24]})
    assert (L > 1.6).tolist() == [True, True, False]
    assert np.isfinite(leverage.EL).tolist() == [True, True, False]
    assert pytest.approx(L, rel=1e-12) == leverage.L
    # L* = b is reached at no compute; that is undefined too, and not infinite.
    limit = efficiency_leverage(DENSE, {"alpha": 0.0, "beta": -0.1, "b": 1.6}, 1e20)
    assert np.isnan([limit.EL, limit.C_dense]).all()
    flat = efficiency_leverage(DENSE | {"beta": 0.0}, MOE, 1e20)
    assert np.isnan(flat.EL)


@given(
    alpha=st.floats(1, 1e3),
    beta=st.floats(-0.5, -0.02),
    b=st.floats(0.5, 2),
    moe_alpha=st.floats(1, 1e3),
    ln_C=st.floats(38, 55),
)
def test_the_dense_model_has_the_same_loss_at_its_compute(alpha, beta, b, moe_alpha, ln_C):
    dense = {"alpha": alpha, "beta": beta, "b": b}
    moe = {"alpha": moe_alpha, "beta": -0.1, "b": b + 0.01}
    C = np.exp(ln_C)
    leverage = efficiency_leverage(dense, moe, C)
    if np.isfinite(leverage.C_dense) and leverage.C_dense > 0:
        L = LAW.predict(dense, {"C": leverage.C_dense})
        assert pytest.approx(float(leverage.L), rel=1e-9) == float(L)
    same = efficiency_leverage(dense, dense, C)
    # The loss of a nearly exhausted curve holds few digits of its compute.
    digits = 1e-15 * b / (alpha * C**beta * -beta)
    assert pytest.approx(1.0, rel=1e-9 + 10 * digits) == same.EL


def test_draws_and_computes_broadcast():
    draws = {
        "alpha": np.full((5, 1), 60.0),
        "beta": np.full((5, 1), -0.085),
        "b": np.full((5, 1), 1.6),
    }
    C = np.geomspace(1e18, 1e21, 4)
    leverage = efficiency_leverage(draws, MOE, C)
    assert leverage.L.shape == leverage.EL.shape == (5, 4)
    assert leverage.EL[3] == pytest.approx(efficiency_leverage(DENSE, MOE, C).EL, rel=1e-14)
