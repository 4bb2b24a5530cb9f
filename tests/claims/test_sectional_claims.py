"""The sectional claims: what the corrected cost model says of each, by an own computation."""

from __future__ import annotations

import numpy as np
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.claims import sectional
from moelaws.claims.base import NOT_SUPPORTED, SUPPORTED
from moelaws.claims.sectional import CLAIMS
from moelaws.laws.sectional import cost

VERDICTS = {
    "larger_models_take_more_experts": NOT_SUPPORTED,
    "sections_save_compute": NOT_SUPPORTED,
    "cheaper_than_traditional_experts": NOT_SUPPORTED,
    "gain_faster_than_experts": NOT_SUPPORTED,
    "one_optimum": SUPPORTED,
    "overhead_lowers_the_optimum": SUPPORTED,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_verdicts_need_no_run(claim: str) -> None:
    found = CLAIMS[claim].judge(Inputs(None))
    assert found.verdict == VERDICTS[claim]
    assert found.value is not None


def test_a_second_expert_costs_at_least_an_eighth_more() -> None:
    # S(2)/S(1) = 1 + (9 L^2 d0/2 + 3 L d0^2/4 + 3 alpha) / (6 L d0^2 + 4 L^2 d0 + alpha), least
    # where L is short and alpha 0.
    L, d0 = 128.0, 32768.0
    expected = 1 + (4.5 * L**2 * d0 + 0.75 * L * d0**2) / (6 * L * d0**2 + 4 * L**2 * d0)
    found = CLAIMS["sections_save_compute"].judge(Inputs(None))
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert found.value > 1.125


def test_traditional_experts_are_never_dearer() -> None:
    found = CLAIMS["cheaper_than_traditional_experts"].judge(Inputs(None))
    E, L, d0 = 8.0, 128.0, 32768.0
    traditional = E * (3 * L * d0**2 + 2 * L**2 * d0)
    assert found.value == pytest.approx(traditional / cost.cost(E, L, d0, 0.0), rel=1e-9)


def test_the_largest_real_optimum_is_below_two_by_far(monkeypatch: pytest.MonkeyPatch) -> None:
    found = CLAIMS["larger_models_take_more_experts"].judge(Inputs(None))
    assert (found.value, found.unit) == (1.0, "experts")
    assert "below 1.26" in found.measured


def test_a_model_in_which_experts_pay_would_be_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules can say yes: a cost that falls with E, and an optimum that grows with the shape."""

    class Cheaper:
        def evaluate(self, params: object, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            L, d0, E = columns["L"], columns["d0"], columns.get("E", 1.0)
            whole = np.log2(L) + np.log2(d0) + 0 * columns["alpha"]
            return {"S": L * d0 / E, "E_whole": whole, "E_opt": whole, "total_factor": L * 0 + E,
                    "projection_factor": E**2 * np.ones_like(L)}  # fmt: skip

    monkeypatch.setattr(sectional.laws, "get", lambda ref: Cheaper())
    for claim in list(VERDICTS)[:4]:
        assert CLAIMS[claim].judge(Inputs(None)).verdict == SUPPORTED, claim
