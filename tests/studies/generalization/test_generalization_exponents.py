"""Exponents and the identities between them against the paper's Table 5 and other routes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.studies.generalization.laws import exponents

# Table 5: E; alpha_N; alpha_D; then its derived cells as printed.
TABLE_5 = {
    1: (0.1817, 0.1965, 0.0944, 0.1537, 0.0832, 0.0427, 0.0111, 0.2779, 0.1335),
    2: (0.1780, 0.2065, 0.0955, 0.1511, 0.0817, 0.0553, 0.0138, 0.3666, 0.1697),
    4: (0.1731, 0.2192, 0.0967, 0.1475, 0.0796, 0.0716, 0.0170, 0.4855, 0.2142),
    8: (0.1676, 0.2338, 0.0976, 0.1435, 0.0773, 0.0902, 0.0203, 0.6287, 0.2625),
    16: (0.1617, 0.2494, 0.0980, 0.1391, 0.0748, 0.1102, 0.0232, 0.7917, 0.3114),
    32: (0.1557, 0.2652, 0.0981, 0.1347, 0.0722, 0.1304, 0.0258, 0.9684, 0.3582),
}
DERIVED = (
    "alpha_C",
    "alpha_D_predicted",
    "alpha_C_predicted",
    "delta_D",
    "delta_C",
    "relative_delta_D",
    "relative_delta_C",
)
SLOPES = {"alpha_N": [row[0] for row in TABLE_5.values()]} | {
    "alpha_D": [row[1] for row in TABLE_5.values()]
}
positive = st.floats(0.05, 50)


def evaluated(ref, **columns):
    return laws.get(ref).evaluate({}, columns)


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
    separable = exponents.separable_alpha_C(values["alpha_N"], values["alpha_D"])
    assert separable == pytest.approx(values["alpha_C"], rel=1e-12)  # Eq 23 under the identities


def test_no_smoothness_has_a_data_exponent_of_1():
    assert np.isnan(exponents.smoothness_from_D([1.0, 1.5], 8)).all()


def test_table_5_at_8_experts():
    values = evaluated("generalization.exponents:consistency", alpha_N=0.1676, alpha_D=0.2338)
    assert [values[name] for name in DERIVED] == pytest.approx(
        [
            0.09762052815146986,
            0.14354230900993492,
            0.0773205388448053,
            0.09025769099006509,
            0.02029998930666456,
            0.6287880668257755,
            0.26254329845540636,
        ],
        rel=1e-6,
    )


def test_table_5_is_truncated_to_four_decimals():
    values = evaluated("generalization.exponents:consistency", **SLOPES)
    cells = np.array([values[name] for name in DERIVED]).T
    printed = np.array([row[2:] for row in TABLE_5.values()])
    assert np.abs(cells - printed).max() < 1e-4
    truncated = np.trunc(cells * 1e4) / 1e4
    differs = ~np.isclose(truncated, printed, atol=1e-9)
    assert list(zip(*np.nonzero(differs), strict=True)) == [(3, 4)]  # delta_C at E = 8: .02029999
    rounded = np.round(cells, 4)
    assert (~np.isclose(rounded, printed, atol=1e-9)).sum() > 10


def test_mean_deviations_from_the_identities():
    values = evaluated("generalization.exponents:consistency", **SLOPES)
    means = [np.abs(values[name]).mean() for name in ("delta_D", "delta_C")]
    assert means == pytest.approx([0.08345312264459082, 0.018588085672163874], rel=1e-5)
    assert values["delta_D"].max() == pytest.approx(0.1305, abs=1e-4)
    assert values["delta_C"].max() == pytest.approx(0.0259, abs=1e-4)


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
