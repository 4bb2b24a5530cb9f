"""k* against brute force, Lambert's W, and the paper's iterate."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from moelaws import laws
from moelaws.studies.generalization.laws.active_experts import Bound

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


def evaluated(ref="generalization.active_experts", **columns):
    return laws.get(ref).evaluate({}, CASE | columns)


def bound_of(**columns):
    return Bound.of(laws.get("generalization.active_experts").columns(CASE | columns))


def test_published_example():
    values = evaluated()
    assert values["k_star"] == pytest.approx(5.144305635985333, rel=1e-6)
    assert values["k_local_maximum"] == pytest.approx(56.403192136561536, rel=1e-6)
    assert [values["k_whole"], values["saturated"]] == [5, 0]


def test_all_experts_where_there_is_no_stationary_point():
    values = evaluated(n=1e6)
    assert values["z"] == pytest.approx(13.486991523486092, rel=1e-6)
    assert [values["k_star"], values["k_whole"], values["saturated"]] == [64, 64, 1]
    assert np.isnan(values["k_local_maximum"])


def test_the_paper_s_iterate():
    values = evaluated("generalization.active_experts:paper")
    assert values["k_star"] == pytest.approx(3.656869052945944, rel=1e-6)
    exact = evaluated()
    assert values["k_star"] / exact["k_star"] - 1 == pytest.approx(-0.29, abs=0.005)
    assert values["Phi"] > exact["Phi"]
    k = float(values["k_without_log"])
    assert k == pytest.approx((0.25 * 1e4 / 128) ** 0.8, rel=1e-12)
    for step in range(int(values["iterations"])):
        k = (0.25 * 1e4 / (128 * math.log(math.e * 64 / k))) ** 0.8
        if step == 0:
            assert values["k_first"] == pytest.approx(k, rel=1e-12)
    assert values["k_star"] == pytest.approx(k, rel=1e-11)


@given(point=points)
def test_no_k_has_a_lower_bound_than_k_star(point):
    values = evaluated(**point)
    bound = bound_of(**point)
    k = point["M"] * np.exp(-np.linspace(0, 60, 20_001))
    k = np.append(k, values["k_star"] * np.exp(np.linspace(-1e-3, 0, 101)))
    least = bound.value(k).min()
    assert 0 < values["k_star"] <= point["M"]
    assert values["Phi"] <= least * (1 + 1e-12)
    at, price = values["k_star"], point["T"] * np.log(math.e * point["M"] / values["k_star"])
    Phi = point["A"] / at ** (2 * point["s"] / point["d"]) + at / point["n"] * (point["B"] + price)
    assert values["Phi"] == pytest.approx(float(Phi), rel=1e-12)
    whole = np.arange(1, point["M"] + 1)
    assert bound.value(values["k_whole"]) == pytest.approx(bound.value(whole).min(), rel=1e-12)


@given(point=points)
def test_an_inner_optimum_solves_the_first_order_condition_within_its_bounds(point):
    values = evaluated(**point)
    if values["saturated"]:
        return
    k, p = values["k_star"], 2 * point["s"] / point["d"]
    gain = p * point["A"] * k ** -(p + 1)
    price = (point["B"] + point["T"] * np.log(point["M"] / k)) / point["n"]
    assert gain == pytest.approx(float(price), rel=1e-9)
    assert values["contraction"] < 1
    if k >= 1:
        assert values["k_lower"] <= k * (1 + 1e-9)
        assert point["B"] == 0 or k <= values["k_upper"] * (1 + 1e-9)


@given(point=points)
def test_stationary_points_are_lambert_s_branches(point):
    p, values = 2 * point["s"] / point["d"], evaluated(**point)
    ratio = point["B"] / point["T"]
    if ratio > 100:  # e^(B/T) is beyond what the closed form can hold
        return
    K = point["M"] * math.exp(ratio)
    z = (p + 1) * p * point["A"] * point["n"] / point["T"] * K ** -(p + 1)
    if z < sys.float_info.min:  # so is K^-(p+1), some of whose digits or all of them are lost
        return
    assert values["z"] == pytest.approx(z, rel=1e-9)
    minimum, maximum = (
        (K * np.exp(lambertw(-z, branch) / (p + 1))).real if z < 1 / math.e else math.nan
        for branch in (-1, 0)
    )
    if abs(z * math.e - 1) < 1e-4:  # the branches meet: neither is determined to many digits
        return
    if maximum < point["M"] * (1 - 1e-9):
        assert values["k_local_maximum"] == pytest.approx(maximum, rel=1e-6)
    elif not maximum < point["M"] * (1 + 1e-9):
        assert np.isnan(values["k_local_maximum"])
    if not values["saturated"]:
        assert values["k_star"] == pytest.approx(minimum, rel=1e-6)


@given(point=points)
def test_the_paper_s_iterate_settles_below_the_optimum(point):
    values = evaluated("generalization.active_experts:paper", **point)
    k, p = values["k_star"], 2 * point["s"] / point["d"]
    price = point["B"] + point["T"] * np.log(math.e * point["M"] / k)
    solution = (p * point["A"] * point["n"] / price) ** (1 / (p + 1))
    assert k == pytest.approx(float(min(solution, point["M"])), rel=1e-8)
    assert k <= bound_of(**point).minimum() * (1 + 1e-9)
    assert np.isfinite(values["iterations"])


def test_costly_experts_need_no_large_exponentials():
    """B/T = 1e9: e^(B/T) is no number, the optimum that of Eq 10 without the routing term."""
    values = evaluated(B=1.28e11, n=1e13)
    assert values["k_star"] == pytest.approx((0.25 * 1e13 / 1.28e11) ** 0.8, rel=1e-7)
    assert values["z"] == 0


def test_the_end_is_lower_than_a_local_minimum_beyond_the_maximum():
    """Phi falls again above W_0's root: M can win although a local minimum lies inside."""
    bound = bound_of(n=2.3e4)
    values = evaluated(n=2.3e4)
    assert 16 < bound.local_minimum() < 17 < 42 < bound.local_maximum() < 43
    assert bound.value(bound.local_minimum()) > bound.value(64)
    assert values["k_star"] == 64
