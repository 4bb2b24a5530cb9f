"""k* against brute force and Lambert's W."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from moelaws import laws
from moelaws.studies.generalization.laws.active_experts import bound, local_minimum

CASE = {"s": 1, "d": 8, "A": 1, "B": 0, "T": 128, "M": 64, "n": 1e4}
# B / T from 0 to 1e8; n over the range that puts k* below 1, inside, and beyond M.
points = st.fixed_dictionaries(
    {
        "s": st.floats(0.2, 4),
        "d": st.floats(1, 30),
        "A": st.floats(0.01, 100),
        "B": st.one_of(st.just(0.0), st.floats(-3, 10).map(lambda x: 10**x)),
        "T": st.floats(2, 6).map(lambda x: 10**x),
        "M": st.integers(1, 1024),
        "n": st.floats(2, 14).map(lambda x: 10**x),
    }
)


LAW = laws.get("generalization.active_experts")


def evaluated(**columns):
    return LAW.evaluate({}, CASE | columns)


def columns_of(**columns):
    return LAW.columns(CASE | columns)


def test_published_example():
    values = evaluated()
    assert values["k_star"] == pytest.approx(5.144305635985333, rel=1e-6)
    assert [values["k_whole"], values["saturated"]] == [5, 0]


@given(point=points)
def test_no_k_has_a_lower_bound_than_k_star(point):
    values = evaluated(**point)
    columns = columns_of(**point)
    k = point["M"] * np.exp(-np.linspace(0, 60, 20_001))
    k = np.append(k, values["k_star"] * np.exp(np.linspace(-1e-3, 0, 101)))
    least = bound(k, columns).min()
    assert 0 < values["k_star"] <= point["M"]
    assert values["Phi"] <= least * (1 + 1e-12)
    at, price = values["k_star"], point["T"] * np.log(math.e * point["M"] / values["k_star"])
    Phi = point["A"] / at ** (2 * point["s"] / point["d"]) + at / point["n"] * (point["B"] + price)
    assert values["Phi"] == pytest.approx(float(Phi), rel=1e-12)
    whole = np.arange(1, point["M"] + 1)
    assert bound(values["k_whole"], columns) == pytest.approx(
        bound(whole, columns).min(), rel=1e-12
    )


@given(point=points)
def test_an_inner_optimum_is_lambert_s_lower_branch(point):
    p, values = 2 * point["s"] / point["d"], evaluated(**point)
    ratio = point["B"] / point["T"]
    if values["saturated"] or ratio > 100:  # e^(B/T) is beyond what the closed form can hold
        return
    K = point["M"] * math.exp(ratio)
    z = (p + 1) * p * point["A"] * point["n"] / point["T"] * K ** -(p + 1)
    if z < sys.float_info.min:  # so is K^-(p+1), some of whose digits or all of them are lost
        return
    if abs(z * math.e - 1) < 1e-4:  # the branches meet: neither is determined to many digits
        return
    minimum = (K * np.exp(lambertw(-z, -1) / (p + 1))).real
    assert values["k_star"] == pytest.approx(minimum, rel=1e-6)


def test_costly_experts_need_no_large_exponentials():
    """B/T = 1e9: e^(B/T) is no number, the optimum that of Eq 10 without the routing term."""
    values = evaluated(B=1.28e11, n=1e13)
    assert values["k_star"] == pytest.approx((0.25 * 1e13 / 1.28e11) ** 0.8, rel=1e-7)


def test_the_end_is_lower_than_a_local_minimum_beyond_the_maximum():
    """Phi falls again above W_0's root: M can win although a local minimum lies inside."""
    columns = columns_of(n=2.3e4)
    k = local_minimum(columns)
    assert 16 < k < 17
    assert bound(64, columns) < bound(k, columns) < bound(42, columns) > bound(43, columns)
    assert evaluated(n=2.3e4)["k_star"] == 64
