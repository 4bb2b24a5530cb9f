"""The leverage paper's laws: its numbers, its curves and the loss that follows from them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.laws.clark.routing import effective_experts
from moelaws.studies.leverage.laws import joint
from moelaws.studies.leverage.laws.curve import LAW as CURVE
from moelaws.studies.leverage.laws.curve import efficiency_leverage

TABLE_6 = joint.LAW.published
rows = {
    "A": np.tile([0.0078, 0.0156, 0.031, 0.0625, 0.125, 0.25, 0.5, 1.0], 6),
    "G": np.repeat([2.0, 4.0, 6.0, 8.0, 12.0, 16.0], 8),
    "C": np.geomspace(3e18, 3e20, 48),
}


@pytest.mark.parametrize(
    ("A", "G", "C", "expected"),
    [
        (0.031, 12, 1e22, 7.244897972612155),
        (0.0078125, 2, 3e20, 4.93611669315451),
        (0.03125, 8, 1e20, 4.485056704247889),
        (1.0, 12, 1e22, 0.989561247453458),  # erratum E1.4: not 1
        (13 / 385, 32 / 3, 7.04643e21, 6.744416905404261),
        (12 / 384, 32 / 3, 7.04643e21, 6.969781947696137),
        (0.031, 32 / 3, 1e22, 7.24452),  # erratum E1.5
    ],
)
def test_eq_4_with_table_6(A, G, C, expected):
    leverage = joint.LAW.predict(TABLE_6, {"A": A, "G": G, "C": C})
    assert leverage == pytest.approx(expected, rel=1e-5)


def test_best_granularity_is_where_a_fine_grid_has_its_largest_leverage():
    best = joint.optimal_granularity(TABLE_6)
    assert best == pytest.approx(11.337212115940453, rel=1e-5)
    G = np.linspace(2, 40, 380_001)
    for A, C in [(0.0078, 3e18), (0.5, 1e22)]:
        EL = joint.LAW.predict(TABLE_6, {"A": A, "G": G, "C": C})
        assert G[EL.argmax()] == pytest.approx(float(best), abs=1e-3)
    assert np.isnan(joint.optimal_granularity(TABLE_6 | {"gamma": -0.01}))


def test_leverage_of_table_6_grows_with_compute_by_eq_3():
    A_hat = effective_experts(1 + 0.031, TABLE_6["A_start"], TABLE_6["A_max"])
    a_C = TABLE_6["d"] * math.log10(A_hat)
    assert a_C == pytest.approx(0.10084306718985254, rel=1e-5)
    low, high = joint.LAW.predict(TABLE_6, {"A": 0.031, "G": 6, "C": [1e20, 1e21]})
    assert math.log10(high / low) == pytest.approx(float(a_C), rel=1e-12)


def test_the_published_A_max_is_not_identified():
    """Its derivative at Table 6 is nothing beside the others': Ahat = A + A_start."""
    model = joint.LAW.model(rows)
    J = model.jacobian(model.evaluate(joint.LAW.vector(TABLE_6)[None])[1])[0]
    size = np.linalg.norm(J, axis=1)
    assert size[5] < 1e-12 * size[:5].min()
    assert np.linalg.svd((J / size[:, None])[:5], compute_uv=False).min() > 1e-4


LAW = laws.get("leverage.loss")


@given(
    A=st.floats(0.004, 0.99), G=st.floats(1, 32), C=st.floats(1e18, 1e22), A_max=st.floats(1.5, 1e9)
)
def test_the_loss_is_the_dense_one_at_EL_times_the_compute(A, G, C, A_max):
    params = LAW.published | {"A_max": A_max}
    EL = joint.LAW.predict(joint.LAW.published | {"A_max": A_max}, {"A": A, "G": G, "C": C})
    dense = CURVE.predict(params, {"C": EL * C})
    assert LAW.predict(params, {"C": C, "S": 1 - A, "G": G}) == pytest.approx(dense, rel=1e-9)


DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}
MOE = {"alpha": 58.0, "beta": -0.0865, "b": 1.58}


def test_leverage_is_undefined_where_the_dense_curve_never_gets_there():
    deep = MOE | {"b": 1.0}
    leverage = efficiency_leverage(DENSE, deep, [1e18, 1e20, 1e24])
    L = CURVE.predict(deep, {"C": [1e18, 1e20, 1e24]})
    assert (L > 1.6).tolist() == [True, True, False]
    assert np.isfinite(leverage.EL).tolist() == [True, True, False]
    assert pytest.approx(L, rel=1e-12) == leverage.L
    # L* = b is reached at no compute; that is undefined too, and not infinite.
    limit = efficiency_leverage(DENSE, {"alpha": 0.0, "beta": -0.1, "b": 1.6}, 1e20)
    assert np.isnan([limit.EL, limit.C_dense]).all()
    flat = efficiency_leverage(DENSE | {"beta": 0.0}, MOE, 1e20)
    assert np.isnan(flat.EL)
