"""The leverage paper's univariate and joint laws of efficiency leverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.leverage.laws import activation, granularity, joint

TABLE_6 = joint.LAW.published
EXAMPLES = {
    "leverage.activation": {"a_A": -0.4, "A_start": 0.02, "A_max": 3.0},
    "leverage.activation:power": {"a_A": -0.4},
    "leverage.granularity": {"a_G": 1.2, "b_G": -0.05, "c_G": -7.0},
    "leverage.granularity:power": {"a_G": 1.2, "b_G": 0.1},
    "leverage.granularity:saturating": {"a_G": 1.2, "b_G": 0.7, "G_start": 0.2, "G_max": 7.0},
    "leverage.compute": {"c_C": -3.5, "a_C": 0.1},
    "leverage.joint": TABLE_6 | {"A_max": 2.5},
}
rows = {
    "A": np.tile([0.0078, 0.0156, 0.031, 0.0625, 0.125, 0.25, 0.5, 1.0], 6),
    "G": np.repeat([2.0, 4.0, 6.0, 8.0, 12.0, 16.0], 8),
    "C": np.geomspace(3e18, 3e20, 48),
}


def columns_of(law):
    return {v.name: rows[v.name] for v in law.variables}


@pytest.mark.parametrize(
    ("A", "G", "C", "expected"),
    [
        (0.031, 12, 1e22, 7.244897972612155),
        (0.031, 2, 1e22, 5.266694275355474),
        (0.0078125, 2, 3e20, 4.93611669315451),
        (0.033766233766233764, 32 / 3, 1e22, 6.982164582887341),
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


def test_saturated_activation_ratio_of_table_6():
    assert _saturated(0.031) == pytest.approx(0.047299999999999995, rel=1e-5)


def test_best_granularity_is_where_a_fine_grid_has_its_most():
    best = joint.optimal_granularity(TABLE_6)
    assert best == pytest.approx(11.337212115940453, rel=1e-5)
    G = np.linspace(2, 40, 380_001)
    for A, C in [(0.0078, 3e18), (0.5, 1e22)]:
        EL = joint.LAW.predict(TABLE_6, {"A": A, "G": G, "C": C})
        assert G[EL.argmax()] == pytest.approx(float(best), abs=1e-3)
        assert granularity.optimal_granularity(_eq_2(A, C)) == pytest.approx(float(best))
    assert np.isnan(joint.optimal_granularity(TABLE_6 | {"gamma": -0.01}))
    assert np.isnan(granularity.optimal_granularity({"b_G": 0.1, "c_G": -7.0}))


def test_leverage_of_table_6_grows_with_compute_by_eq_3():
    a_C = TABLE_6["d"] * math.log10(_saturated(0.031))
    assert a_C == pytest.approx(0.10084306718985254, rel=1e-5)
    low, high = joint.LAW.predict(TABLE_6, {"A": 0.031, "G": 6, "C": [1e20, 1e21]})
    assert math.log10(high / low) == pytest.approx(float(a_C), rel=1e-12)


def test_activation_ratio_for_a_leverage_of_7():
    power = joint.exponent(TABLE_6, 12, 1e22)
    assert power == pytest.approx(-0.6490129451870412, rel=1e-5)
    A = joint.activation_for(TABLE_6, 7, 12, 1e22)
    assert pytest.approx(0.03357372747683257, rel=1e-5) == A
    assert np.isnan(joint.activation_for(TABLE_6, [0.1, 50.0], 12, 1e22)).all()


@given(
    A=st.floats(0.003, 1),
    G=st.floats(1, 32),
    C=st.floats(1e18, 1e24),
    A_max=st.sampled_from([1.5, 30.0, 5.28e16]),
)
def test_activation_for_inverts_eq_4(A, G, C, A_max):
    params = TABLE_6 | {"A_max": A_max}
    EL = joint.LAW.predict(params, {"A": A, "G": G, "C": C})
    inverse = joint.activation_for(params, EL, G, C)
    assert inverse == pytest.approx(A, rel=1e-6)


def _saturated(x, start=TABLE_6["A_start"], most=TABLE_6["A_max"]):
    return float(np.exp(activation.ln_saturated(x, np.log(start), np.log(most))[0]))


def _eq_2(A, C):
    """The parameters of Eq 2 that Eq 4 has at a fixed activation ratio and compute."""
    ln_A, gamma, beta = math.log(_saturated(A)), TABLE_6["gamma"], TABLE_6["beta"]
    at_G_1 = float(joint.exponent(TABLE_6, 1.0, C))
    return {"a_G": at_G_1 * ln_A, "b_G": gamma * ln_A, "c_G": beta / gamma}


@given(A=st.floats(0.003, 1), G=st.floats(1, 32), C=st.floats(1e18, 1e24))
def test_eq_4_at_fixed_activation_and_compute_is_eq_2(A, G, C):
    eq_2 = _eq_2(A, C)
    expected = joint.LAW.predict(TABLE_6, {"A": A, "G": G, "C": C})
    assert granularity.LAW.predict(eq_2, {"G": G}) == pytest.approx(expected, rel=1e-10)
    assert eq_2["c_G"] == pytest.approx(-7.006, abs=5e-4)


@given(x=st.floats(0, 1e3), start=st.floats(1e-4, 0.9), most=st.floats(1.5, 1e17))
def test_saturation_bends_from_start_to_most(x, start, most):
    assert _saturated(0.0, start, most) == pytest.approx(start, rel=1e-9)
    x_hat = _saturated(x, start, most)
    assert start * (1 - 1e-9) <= x_hat <= most * (1 + 1e-9)
    assert _saturated(2 * x + 1, start, most) > x_hat * (1 - 1e-12)


def test_three_conventions_of_the_activation_ratio():
    ratios = [
        activation.activation_ratio(64, 2, 1, convention)
        for convention in ("formal", "over_routed", "routed")
    ]
    assert ratios == pytest.approx([0.046153846153846156, 0.046875, 0.03125], rel=1e-9)
    assert activation.activation_ratio(384, 12, 1) == pytest.approx(13 / 385)
    with pytest.raises(UserError, match="'total'; one of formal, over_routed, routed"):
        activation.activation_ratio(64, 2, 1, "total")


@pytest.mark.parametrize("ref", EXAMPLES)
def test_a_sensible_design_identifies_every_parameter(ref):
    law = laws.get(ref)
    model = law.model(columns_of(law))
    theta = law.vector(EXAMPLES[ref])[None]
    EL = law.predict(EXAMPLES[ref], columns_of(law))
    prediction, state = model.evaluate(theta)
    assert np.abs(prediction[0] - law.on_scale(EL)).max() < 1e-14
    J = model.jacobian(state)[0]
    J = J / np.linalg.norm(J, axis=1, keepdims=True)
    assert np.linalg.svd(J, compute_uv=False).min() > 1e-6


def test_the_published_A_max_is_not_identified():
    """Its derivative at Table 6 is nothing beside the others': Ahat = A + A_start."""
    model = joint.LAW.model(columns_of(joint.LAW))
    J = model.jacobian(model.evaluate(joint.LAW.vector(TABLE_6)[None])[1])[0]
    size = np.linalg.norm(J, axis=1)
    assert size[5] < 1e-12 * size[:5].min()
    others = J[:5] / size[:5, None]
    assert np.linalg.svd(others, compute_uv=False).min() > 1e-4
