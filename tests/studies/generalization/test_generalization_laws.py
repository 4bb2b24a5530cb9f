"""The generalization paper's laws beside its printed numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.spec.fit import Fit
from moelaws.studies.generalization.derived.exponents import QUANTITIES
from moelaws.studies.generalization.laws.routing import REGIMES

# Table 5: E; alpha_N; alpha_D; then its derived cells as printed.
TABLE_5 = {
    1: (0.1817, 0.1965, 0.0944, 0.1537, 0.0832, 0.0427, 0.0111, 0.2779, 0.1335),
    2: (0.1780, 0.2065, 0.0955, 0.1511, 0.0817, 0.0553, 0.0138, 0.3666, 0.1697),
    4: (0.1731, 0.2192, 0.0967, 0.1475, 0.0796, 0.0716, 0.0170, 0.4855, 0.2142),
    8: (0.1676, 0.2338, 0.0976, 0.1435, 0.0773, 0.0902, 0.0203, 0.6287, 0.2625),
    16: (0.1617, 0.2494, 0.0980, 0.1391, 0.0748, 0.1102, 0.0232, 0.7917, 0.3114),
    32: (0.1557, 0.2652, 0.0981, 0.1347, 0.0722, 0.1304, 0.0258, 0.9684, 0.3582),
}
E, CELLS = np.array(list(TABLE_5), float), np.array(list(TABLE_5.values()))


def evaluated(ref, **columns):
    return laws.get(ref).evaluate({}, columns)


def table_5():
    """The consistency of the two exponents that Table 5 prints."""
    slopes = dict(zip(("alpha_N", "alpha_D"), CELLS.T, strict=False))
    return evaluated("generalization.exponents:consistency", **slopes)


def test_kappa_of_table_5():
    expected = [1.27795294, 1.36661236, 1.48552005, 1.62878807, 1.79176240, 1.96847553]
    assert table_5()["kappa"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("ref", "expected", "R2"),
    [
        ("generalization.kappa", [0.23137114980833354, 0.12632505466613067], 0.9966),
        ("generalization.kappa:log2", [1.2385663386058636, 0.13918088764943087], 0.9867),
    ],
)
def test_published_values_are_least_squares_on_table_5(ref, expected, R2):
    law = laws.get(ref)
    y = law.on_scale(table_5()["kappa"])
    slope, intercept = np.polyfit(np.log(E) if law.log_response else np.log2(E), y, 1)
    assert [intercept, slope] == pytest.approx(expected, rel=1e-5)
    assert law.vector(law.published) == pytest.approx(expected, rel=1e-6)
    residual = y - law.on_scale(law.predict(law.published, {"E": E}))
    assert 1 - residual.var() / y.var() == pytest.approx(R2, abs=5e-5)
    # The optimum of the squares: the gradient of the engine's own model is zero there.
    model = law.model(law.columns({"E": E}))
    _, state = model.evaluate(law.vector(law.published)[None])
    assert model.jacobian(state)[0] @ residual == pytest.approx([0, 0], abs=1e-6)


CASE = {"k": 2, "M": 8, "L_T": 4, "l": 128}
BY_ACTIVE = {"chart": 1e-30}  # so that active parameters limit models of any size
smoothness = st.floats(0.5, 4)
dimension = st.floats(2, 30)


def priced(**columns):
    return evaluated("generalization.routing", **columns)


def test_published_numbers():
    values = priced(**CASE, s=1, d=8, n=1e6, eps=0.1)
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


@given(M=st.integers(1, 512), data=st.data())
def test_the_count_of_patterns_is_exact_and_below_its_bound(M, data):
    k = data.draw(st.integers(1, M))
    values = priced(k=k, M=M, L_T=3, l=7)
    exact = 21 * math.log(math.comb(M, k))
    assert values["ln_patterns"] == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert values["ln_patterns"] <= values["R"]


@given(s=smoothness, d=dimension, n=st.floats(1e3, 1e9))
def test_each_threshold_is_where_two_terms_are_equal(s, d, n):
    values = priced(**CASE, **BY_ACTIVE, s=s, d=d, n=n)
    for threshold, term in (("N_cross", "estimation"), ("N_cap", "routing")):
        at = priced(**CASE, **BY_ACTIVE, s=s, d=d, n=n, N_active=values[threshold])
        assert at["approximation"] == pytest.approx(float(at[term]), rel=1e-9)
    at_route = priced(**CASE, **BY_ACTIVE, s=s, d=d, n=values["n_route"])
    assert at_route["N_cross"] == pytest.approx(float(values["R"]), rel=1e-9)


@given(s=smoothness, d=dimension, log_n=st.floats(2, 12), log_N=st.floats(0, 12))
def test_regimes(s, d, log_n, log_N):
    values = priced(**CASE, **BY_ACTIVE, s=s, d=d, n=10**log_n, N_active=10**log_N)
    # Below n_route the cap of routing is the lower of the two, and only there.
    if abs(math.log(values["n_route"]) - math.log(10**log_n)) > 1e-6:
        assert values["routing_dominated"] == (values["N_cap"] < values["N_cross"])
    # Model scaling holds where approximation is the largest of the three terms.
    others = max(values["estimation"], values["routing"])
    if abs(math.log(values["approximation"] / others)) > 1e-6:
        assert values["model_scaling"] == (values["approximation"] > others)
    total = values["approximation"] + values["estimation"] + values["routing"]
    assert values["bound"] == pytest.approx(float(total), rel=1e-12)


@given(s=smoothness, d=dimension, eps=st.floats(0.01, 0.5))
def test_sample_complexity_reaches_its_risk(s, d, eps):
    need = priced(**CASE, **BY_ACTIVE, s=s, d=d, eps=eps)
    at = priced(**CASE, **BY_ACTIVE, s=s, d=d, n=need["n_target"], N_active=need["N_target"])
    assert [at["approximation"], at["estimation"]] == pytest.approx([eps, eps], rel=1e-9)
    assert need["R"] / need["n_target_routing"] == pytest.approx(eps, rel=1e-12)


@given(s=smoothness, d=dimension, log_N=st.floats(0, 12), M=st.integers(1, 512))
def test_the_approximation_has_the_lesser_of_two_limits(s, d, log_N, M):
    """Eq 1: min(N_act^(-2s/d), M^(-2s/d)); App F, constructions B and A."""
    N, n = 10**log_N, 1e300  # so many samples that the model alone errs
    values = priced(**CASE | {"M": M, "k": 1}, s=s, d=d, n=n, N_active=N)
    limits = [N ** (-2 * s / d), M ** (-2 * s / d)]
    assert [values["by_active"], values["by_experts"]] == pytest.approx(limits, rel=1e-9)
    assert values["approximation"] == pytest.approx(min(limits), rel=1e-9)
    if values["approximation"] > 1e-250:
        by_experts = REGIMES[int(values["regime"])] == "limited by experts"
        assert by_experts == (M > N)


def test_the_covering_number_has_a_part_of_weights_and_one_of_routing():
    """Eq 2: N_act ln(1/delta) + T k ln(eM/k), up to constants."""
    few = priced(**CASE, N_active=1e3, delta=0.1)
    assert few["ln_cover"] == pytest.approx(1e3 * math.log(10) + 2443.5654257867677)
    many = priced(**CASE, N_active=1e4, delta=0.1)
    assert [few["cover_by_routing"], many["cover_by_routing"]] == [1, 0]


def test_overhead_is_the_difference_of_two_bounds():
    columns = {"s": 1, "d": 8, "n": 1e6, "N_active": 1e4}
    small, large = priced(**CASE, **columns), priced(**CASE | {"M": 64}, **columns)
    overhead = priced(**CASE, **columns, M_new=64)["overhead"]
    assert overhead == pytest.approx(float(large["bound"] - small["bound"]), rel=1e-9)
    # M = c k experts cost k T ln(e c) / n.
    assert large["routing"] == pytest.approx(2 * 512 * math.log(math.e * 32) / 1e6, rel=1e-12)


LINE, FLOOR = "generalization.scaling", "generalization.scaling:floor"
TRUTH = {"a": 46.0, "alpha": 0.47, "L_inf": 2.06}
X = np.geomspace(4e3, 5e4, 9)


def fitted(ref, L):
    table = pd.DataFrame({"x": X, "L": L}).assign(source="trained")
    spec = Fit(name="f", law=ref, mapping={}, units={"x": "1"}, bootstrap=20)
    return fit(laws.fittable(ref), table, spec).parts[0]


def test_a_floor_is_recovered_and_a_line_without_it_is_too_flat():
    L = laws.fittable(FLOOR).predict(TRUTH, {"x": X})
    assert fitted(FLOOR, L).estimates() == pytest.approx(TRUTH, rel=1e-4)
    line = fitted(LINE, L)
    # The slope of ln L is alpha times the fraction of the loss above its floor.
    above = (L - TRUTH["L_inf"]) / L
    slope = line.params["alpha"].estimate
    assert TRUTH["alpha"] * above.min() < slope < TRUTH["alpha"] * above.max()


positive = st.floats(0.05, 50)


def test_exponents_at_smoothness_1_in_8_dimensions():
    values = evaluated("generalization.exponents", s=1, d=8)
    names = ("alpha_N", "alpha_D", "alpha_C", "N_exponent", "n_exponent")
    assert [values[name] for name in names] == pytest.approx(
        [1 / 4, 1 / 5, 1 / 9, 4 / 9, 5 / 9], rel=1e-12
    )
    assert values["alpha_D_slow"] == pytest.approx(1 / 6, rel=1e-12)  # erratum E3.1
    assert np.isnan(values["N_star"])  # no compute given


def test_smoothness_from_either_slope():
    assert evaluated("generalization.exponents:from_N", alpha_N=0.1817, d=8)["s"] == pytest.approx(
        0.7268, rel=1e-6
    )
    assert evaluated("generalization.exponents:from_D", alpha_D=0.1965, d=8)["s"] == pytest.approx(
        0.9782202862476665, rel=1e-6
    )


@given(s=positive, d=positive)
def test_slopes_give_back_the_smoothness_they_came_from(s, d):
    values = evaluated("generalization.exponents", s=s, d=d)
    from_N = evaluated("generalization.exponents:from_N", alpha_N=values["alpha_N"], d=d)
    from_D = evaluated("generalization.exponents:from_D", alpha_D=values["alpha_D"], d=d)
    assert [from_N["s"], from_D["s"]] == pytest.approx([s, s], rel=1e-9)
    for name in ("alpha_D", "alpha_C"):
        assert from_N[name] == pytest.approx(values[name], rel=1e-12)
    for name in ("alpha_N", "alpha_C"):
        assert from_D[name] == pytest.approx(values[name], rel=1e-9)
    pair = {name: values[name] for name in ("alpha_N", "alpha_D")}
    separable = evaluated("generalization.exponents:consistency", **pair)["alpha_C"]
    assert separable == pytest.approx(values["alpha_C"], rel=1e-12)  # Eq 23 under the identities


def test_no_smoothness_has_a_data_exponent_of_1():
    values = evaluated("generalization.exponents:from_D", alpha_D=[1.0, 1.5], d=8)
    assert np.isnan(values["s"]).all()


def test_table_5_is_truncated_to_four_decimals():
    values, printed = table_5(), CELLS[:, 2:]
    cells = np.array([values[name] for name in QUANTITIES if name in values and name != "kappa"]).T
    assert np.abs(cells - printed).max() < 1e-4
    truncated = np.trunc(cells * 1e4) / 1e4
    differs = ~np.isclose(truncated, printed, atol=1e-9)
    assert list(zip(*np.nonzero(differs), strict=True)) == [(3, 4)]  # delta_C at E = 8: .02029999
    rounded = np.round(cells, 4)
    assert (~np.isclose(rounded, printed, atol=1e-9)).sum() > 10


@given(s=st.floats(0.1, 5), d=st.floats(1, 30), A=st.floats(0.1, 10), B=st.floats(0.1, 10))
def test_compute_optimum_is_the_least_bound_at_fixed_compute(s, d, A, B):
    C = 1e12
    values = evaluated("generalization.exponents", s=s, d=d, C=C, A=A, B=B)
    assert values["N_star"] * values["n_star"] == pytest.approx(C, rel=1e-12)
    N = values["N_star"] * np.linspace(0.9, 1.1, 201)
    bound = A * N ** -(2 * s / d) + B * N**2 / C
    assert bound.argmin() == 100
    doubled = evaluated("generalization.exponents", s=s, d=d, C=2 * C, A=A, B=B)
    slope = math.log2(doubled["N_star"] / values["N_star"])
    assert slope == pytest.approx(float(values["N_exponent"]), rel=1e-9)
