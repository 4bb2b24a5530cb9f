"""The routing term, thresholds and regimes of the generalization bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.generalization.laws import routing

CASE = {"k": 2, "M": 8, "L_T": 4, "l": 128}
smoothness = st.floats(0.5, 4)
dimension = st.floats(2, 30)


def evaluated(**columns):
    return laws.get("generalization.routing").evaluate({}, columns)


def test_published_numbers():
    values = evaluated(**CASE, s=1, d=8, n=1e6, eps=0.1)
    expected = {
        "R": 2443.5654257867677,
        "ln_patterns": 1706.0887092097034,
        "n_route": 17180.269198982234,
        "N_cross": 63095.734448019364,
        "N_cap": 28048143032.99802,
        "n_target": 1e5,
        "N_target": 1e4,
        "n_target_routing": 24435.654257867674,
    }
    assert {name: float(values[name]) for name in expected} == pytest.approx(expected, rel=1e-6)


def test_what_is_not_given_is_not_computed():
    values = evaluated(**CASE, s=1, d=8)
    known = {name for name, value in values.items() if not np.isnan(value)}
    assert known == {"R", "ln_patterns", "n_route"}


@given(M=st.integers(1, 512), data=st.data())
def test_the_count_of_patterns_is_exact_and_below_its_bound(M, data):
    k = data.draw(st.integers(1, M))
    values = evaluated(k=k, M=M, L_T=3, l=7)
    exact = 21 * math.log(math.comb(M, k))
    assert values["ln_patterns"] == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert values["ln_patterns"] <= values["R"]


@given(s=smoothness, d=dimension, n=st.floats(1e3, 1e9))
def test_each_threshold_is_where_two_terms_are_equal(s, d, n):
    R = evaluated(**CASE)["R"]
    at_cross = routing.bound_terms(routing.crossover(n, s, d), n, R, s, d)
    assert at_cross[0] == pytest.approx(at_cross[1], rel=1e-9)
    at_cap = routing.bound_terms(routing.routing_cap(n, R, s, d), n, R, s, d)
    assert at_cap[0] == pytest.approx(at_cap[2], rel=1e-9)
    n_route = routing.routing_threshold(R, s, d)
    assert routing.crossover(n_route, s, d) == pytest.approx(R, rel=1e-9)


@given(s=smoothness, d=dimension, log_n=st.floats(2, 12), log_N=st.floats(0, 12))
def test_regimes(s, d, log_n, log_N):
    values = evaluated(**CASE, s=s, d=d, n=10**log_n, N_active=10**log_N)
    # Below n_route the cap of routing is the lower of the two, and only there.
    if abs(math.log(values["n_route"]) - math.log(10**log_n)) > 1e-6:
        assert values["routing_dominated"] == (values["N_cap"] < values["N_cross"])
    # Model scaling holds where approximation is the largest of the three terms.
    others = max(values["estimation"], values["routing"])
    if abs(math.log(values["approximation"] / others)) > 1e-6:
        assert values["model_scaling"] == (values["approximation"] > others)
    parts = values["approximation"] + values["estimation"] + values["routing"]
    assert values["bound"] == pytest.approx(float(parts), rel=1e-12)


@given(s=smoothness, d=dimension, eps=st.floats(0.01, 0.5))
def test_sample_complexity_reaches_its_risk(s, d, eps):
    n, N = routing.sample_complexity(eps, s, d)
    approximation, estimation, _ = routing.bound_terms(N, n, 0.0, s, d)
    assert [approximation, estimation] == pytest.approx([eps, eps], rel=1e-9)
    R = evaluated(**CASE, eps=eps)
    assert R["R"] / R["n_target_routing"] == pytest.approx(eps, rel=1e-12)


def test_overhead_is_the_difference_of_two_bounds():
    columns = {"s": 1, "d": 8, "n": 1e6, "N_active": 1e4}
    small, large = evaluated(**CASE, **columns), evaluated(**CASE | {"M": 64}, **columns)
    overhead = evaluated(**CASE, **columns, M_new=64)["overhead"]
    assert overhead == pytest.approx(float(large["bound"] - small["bound"]), rel=1e-9)
    # M = c k experts cost k T ln(e c) / n.
    assert large["routing"] == pytest.approx(2 * 512 * math.log(math.e * 32) / 1e6, rel=1e-12)


def test_more_active_experts_than_there_are():
    with pytest.raises(UserError, match=r"k is 9 at M = 8; .*at most M"):
        evaluated(k=9, M=[16, 8], L_T=4, l=128)
    assert np.isnan(routing.routing_term(9, 8, 4, 128))
    assert np.isnan(routing.ln_patterns([9, 0], 8, 4, 128)).all()
