"""The sectional claims: what the corrected cost model says of each, by an own computation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.spec.project import load_study
from moelaws.studies.sectional.laws import cost
from repository import REPOSITORY

STUDY = load_study("sectional", REPOSITORY)
CLAIMS = {claim.name: claim for claim in STUDY.claims}

VERDICTS = {
    "larger_models_take_more_experts": Verdict.NOT_SUPPORTED,
    "sections_save_compute": Verdict.NOT_SUPPORTED,
    "cheaper_than_traditional_experts": Verdict.NOT_SUPPORTED,
    "gain_faster_than_experts": Verdict.NOT_SUPPORTED,
    "one_optimum": Verdict.SUPPORTED,
    "overhead_lowers_the_optimum": Verdict.SUPPORTED,
}


def verdict_on(claim: str) -> Any:
    return SimpleNamespace(**judged(STUDY, CLAIMS[claim], Inputs(frame=None)))


@pytest.mark.parametrize("claim", VERDICTS)
def test_verdicts_need_no_run(claim: str) -> None:
    judgement = verdict_on(claim)
    assert judgement.verdict == VERDICTS[claim]
    assert judgement.value is not None


def test_a_second_expert_costs_at_least_an_eighth_more() -> None:
    # S(2)/S(1) = 1 + (9 L^2 d0/2 + 3 L d0^2/4 + 3 alpha) / (6 L d0^2 + 4 L^2 d0 + alpha), least
    # where L is short and alpha 0.
    L, d0 = 128.0, 32768.0
    expected = 1 + (4.5 * L**2 * d0 + 0.75 * L * d0**2) / (6 * L * d0**2 + 4 * L**2 * d0)
    judgement = verdict_on("sections_save_compute")
    assert judgement.value == pytest.approx(expected, rel=1e-9)
    assert judgement.value > 1.125


def test_traditional_experts_are_never_dearer() -> None:
    judgement = verdict_on("cheaper_than_traditional_experts")
    E, L, d0 = 8.0, 128.0, 32768.0
    traditional = E * (3 * L * d0**2 + 2 * L**2 * d0)
    assert judgement.value == pytest.approx(traditional / cost.cost(E, L, d0, 0.0), rel=1e-9)


def test_the_largest_real_optimum_is_below_two_by_far() -> None:
    judgement = verdict_on("larger_models_take_more_experts")
    assert (judgement.value, judgement.unit) == (1.0, "experts")
    assert "below 1.26" in judgement.measured


def test_a_model_in_which_experts_pay_would_be_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules can say yes: a cost that falls with E, and an optimum that grows with the shape."""

    class Cheaper:
        def evaluate(self, params: object, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            L, d0, E = columns["L"], columns["d0"], columns.get("E", 1.0)
            whole = np.log2(L) + np.log2(d0) + 0 * columns["alpha"]
            return {"S": L * d0 / E, "E_whole": whole, "E_opt": whole, "total_factor": L * 0 + E,
                    "projection_factor": E**2 * np.ones_like(L)}  # fmt: skip

    monkeypatch.setattr(cost, "LAW", Cheaper())
    monkeypatch.setattr(cost, "VARIANTS", {"printed": Cheaper()})
    for claim in list(VERDICTS)[:4]:
        assert verdict_on(claim).verdict == Verdict.SUPPORTED, claim
