"""Ludziejewski et al.'s joint law of dense and MoE models against the paper's Tables 1 and 4."""

import numpy as np
import pytest

from moelaws.laws.joint.loss import LAW, VARIANTS, at_experts, compute_optimal

EXPERTS = (1, 2, 4, 8, 16, 32)
# Table 1: compute -> optimal active parameters and tokens by number of experts.
TABLE_1 = {
    1e20: (
        (1.7e9, 1.5e9, 1.2e9, 990e6, 810e6, 669e6),
        (9.7e9, 11.4e9, 13.9e9, 17e9, 20.7e9, 24.9e9),
    ),
    1e21: ((5.7e9, 5e9, 4.4e9, 3.8e9, 3.3e9, 2.85e9), (29.3e9, 33e9, 38e9, 44.3e9, 51.2e9, 58.4e9)),
    1e22: (
        (18.8e9, 17.4e9, 15.8e9, 14.4e9, 13.2e9, 12.2e9),
        (88.6e9, 96e9, 105.4e9, 115.8e9, 126.5e9, 136.9e9),
    ),
}


def test_table_1():
    for F, (sizes, tokens) in TABLE_1.items():
        best = [compute_optimal(VARIANTS[f"E{E}"].published, F) for E in EXPERTS]
        assert [b.N_active for b in best] == pytest.approx(sizes, rel=0.035)  # two digits
        assert [b.D for b in best] == pytest.approx(tokens, rel=0.01)


def test_tokens_a_parameter_rise_with_experts():
    for F, low, high in [(1e20, 5.61, 37.3), (1e21, 5.13, 20.5), (1e22, 4.69, 11.2)]:
        ratio = [compute_optimal(VARIANTS[f"E{E}"].published, F).ratio for E in EXPERTS]
        assert (np.diff(ratio) > 0).all()
        assert (ratio[0], ratio[-1]) == pytest.approx((low, high), rel=6e-3)


def test_table_3_gives_table_4():
    for E in EXPERTS:
        reduced = at_experts(LAW.published, E)
        stated = VARIANTS[f"E{E}"].published
        assert {k: float(v) for k, v in reduced.items()} == pytest.approx(dict(stated), rel=3e-3)


def test_optimum_is_the_least_loss_of_a_fine_grid():
    """Against brute force: the printed sign of G's exponent (Eq 7) gives another point."""
    for E, F in [(1, 1e20), (8, 1e21), (32, 1e22)]:
        best = compute_optimal(at_experts(LAW.published, E), F)
        N = np.geomspace(1e8, 1e11, 100_001)
        L = LAW.predict(LAW.published, {"N_active": N, "D": F / (6 * N), "E": E})
        assert float(best.N_active) == pytest.approx(N[L.argmin()], rel=1e-3)
        assert float(best.L) == pytest.approx(L.min(), rel=1e-9)
        m, mu, n, nu, _ = (float(x) for x in at_experts(LAW.published, E).values())
        printed = (mu * m / (nu * n)) ** (1 / (mu + nu)) * (F / 6) ** (nu / (mu + nu))
        assert printed != pytest.approx(N[L.argmin()], rel=0.5)


def test_no_optimum_where_a_term_does_not_fall():
    reduced = VARIANTS["E8"].published
    assert np.isnan(compute_optimal(reduced | {"mu": 0.01}, 1e20).N_active)


def test_a_fixed_number_of_experts_is_the_law_with_that_number():
    columns = {"N_active": np.geomspace(1e8, 3e9, 5), "D": np.geomspace(1e9, 3e10, 5)}
    for E in EXPERTS:
        params = {k: float(v) for k, v in at_experts(LAW.published, E).items()}
        joint = LAW.predict(LAW.published, columns | {"E": E})
        assert VARIANTS[f"E{E}"].predict(params, columns) == pytest.approx(joint, rel=1e-12)
