"""The exact optimum of the allocation paper's Eq 3, against direct minimisation of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws

LAW = laws.get("allocation.elasticity")
PRINTED = laws.get("allocation.elasticity:printed")
CASE = {"C": 1e6, "a": 0.3, "e": 0.2, "alpha_A": 1.3, "alpha_E": 2.0}

points = st.fixed_dictionaries(
    {
        "C": st.floats(1e-3, 1e24),
        "a": st.floats(0.01, 2),
        "e": st.floats(0.01, 2),
        "alpha_A": st.floats(1e-3, 1e3),
        "alpha_E": st.floats(1e-3, 1e3),
    }
)


def eq_3(ln_r, C, a, e, alpha_A, alpha_E):
    r = np.exp(ln_r)
    return alpha_A * (C / (1 + r)) ** -a + alpha_E * (C * r / (1 + r)) ** -e


def test_exact_optimum_and_its_slope():
    values = LAW.evaluate({}, CASE)
    assert values["r"] == pytest.approx(2.8843812650377445, rel=1e-6)
    assert values["slope"] == pytest.approx(0.07847717403221514, rel=1e-6)


def test_printed_form_reverses_the_sign():
    printed = PRINTED.evaluate({}, CASE)
    assert printed["r"] == pytest.approx(0.404884, rel=1e-5)
    assert printed["slope"] == pytest.approx(-0.0666667, rel=1e-5)
    assert LAW.evaluate({}, CASE)["slope"] > 0


def test_exact_optimum_is_the_least_loss_of_a_fine_grid():
    ln_r = np.linspace(-8, 8, 1_600_001)
    for change in ({}, {"a": 0.1}, {"C": 1e20}, {"alpha_E": 0.1, "a": 0.9}, {"a": 0.2}):
        case = CASE | change
        best = ln_r[eq_3(ln_r, **case).argmin()]
        assert math.log(LAW.evaluate({}, case)["r"]) == pytest.approx(best, abs=2e-5)


@given(points)
def test_exact_optimum_fulfils_the_condition_and_its_slope_the_difference(point):
    r = float(LAW.evaluate({}, point)["r"])
    a, e = point["a"], point["e"]
    left = (e + 1) * math.log(r) + (a - e) * math.log1p(r)
    right = math.log(point["alpha_E"] * e / (point["alpha_A"] * a)) + (a - e) * math.log(point["C"])
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)

    C = point["C"] * np.exp([-1e-3, 1e-3])
    values = LAW.evaluate({}, point | {"C": C})
    slope = np.diff(np.log(values["r"]))[0] / 2e-3
    assert slope == pytest.approx(float(LAW.evaluate({}, point)["slope"]), rel=1e-4, abs=1e-9)


@given(points)
def test_equal_elasticities_give_a_constant_ratio(point):
    case = point | {"e": point["a"]}
    pull = case["alpha_E"] / case["alpha_A"]
    values = LAW.evaluate({}, case)
    assert values["r"] == pytest.approx(pull ** (1 / (1 + case["a"])), rel=1e-9)
    assert values["slope"] == 0
    printed = PRINTED.evaluate({}, case)["r"]
    assert printed == pytest.approx(pull ** (1 / (1 + 2 * case["a"])), rel=1e-9)


@given(points)
def test_steeper_attention_term_moves_compute_to_experts(point):
    # What decays faster matters less as compute grows: the sign is that of a - e.
    slope = LAW.evaluate({}, point)["slope"]
    assert np.sign(slope) == np.sign(point["a"] - point["e"])
    assert np.sign(PRINTED.evaluate({}, point)["slope"]) == -np.sign(slope)


def test_texts_say_what_is_computed():
    names = CASE | {"r": float(LAW.evaluate({}, CASE)["r"])}
    left, right = LAW.equation.replace("^", "**").split("=")
    assert eval(left, {}, names) == pytest.approx(eval(right, {}, names), rel=1e-12)
    text = PRINTED.equation.replace("^", "**").split("=")[1]
    assert eval(text, {}, CASE) == pytest.approx(float(PRINTED.evaluate({}, CASE)["r"]), rel=1e-12)
