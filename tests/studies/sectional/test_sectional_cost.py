"""The cost model of the sectional paper, its misprints, and its claims on it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.figures.draw import make
from moelaws.spec.project import load_study
from moelaws.studies.sectional.laws import cost
from picture import assert_legible, words
from repository import REPOSITORY

SHAPE = {"L": 4096, "d0": 4096}
FORMS = ("sectional.cost", "sectional.cost:printed")
sizes = st.floats(0, 6).map(lambda x: 10**x)
overheads = st.one_of(st.just(0.0), st.floats(-3, 18).map(lambda x: 10**x))


def evaluated(ref="sectional.cost", **columns):
    return laws.get(ref).evaluate({}, columns)


@pytest.mark.parametrize(
    ("alpha", "eq_21", "printed", "corrected"),
    [
        (1e6, 1.2138599657918256, 1.2599179699540553, 1.104651465781783),
        (1e9, 1.2114640254292477, 1.2568634615858378, 1.1033256693638425),
        (1e12, 0.7598600786907188, 0.7260267822226069, 0.7197036508010753),
    ],
)
def test_optimal_number_of_experts(alpha, eq_21, printed, corrected):
    as_printed = evaluated("sectional.cost:printed", **SHAPE, alpha=alpha)
    assert as_printed["E_opt_eq21"] == pytest.approx(eq_21, rel=1e-6)
    assert as_printed["E_opt"] == pytest.approx(printed, rel=1e-6)
    assert evaluated(**SHAPE, alpha=alpha)["E_opt"] == pytest.approx(corrected, rel=1e-6)


def test_cost_of_two_experts():
    values = [evaluated(ref, **SHAPE, alpha=1e8, E=2)["S"] for ref in FORMS]
    assert values == pytest.approx([1048372020224.0, 773494113280.0], rel=1e-9)


def test_reduction_factors_at_eight_experts():
    corrected, printed = (evaluated(ref, **SHAPE, alpha=0, E=8) for ref in FORMS)
    factors = [form["projection_factor"] for form in (corrected, printed)]
    assert factors == pytest.approx([0.9980506822612085, 21.291747888239115], rel=1e-9)
    factors = [form["attention_factor"] for form in (corrected, printed)]
    factors.append(printed["attention_factor_eq14"])
    expected = [0.12496948987063705, 8.138018246327004e-05, 0.49902534113060426]
    assert factors == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ref", FORMS)
@given(L=sizes, d0=sizes, alpha=overheads)
def test_no_cost_has_its_least_beyond_the_cube_root_of_2(ref, L, d0, alpha):
    values = evaluated(ref, L=L, d0=d0, alpha=alpha)
    assert 0 < values["E_opt"] <= 2 ** (1 / 3)
    E = values["E_opt"] * np.array([0.5, 0.999, 1.0, 1.001, 2.0])
    S = evaluated(ref, L=L, d0=d0, alpha=alpha, E=E)["S"]
    assert S.argmin() == 2
    whole = evaluated(ref, L=L, d0=d0, alpha=alpha, E=np.arange(1, 65))["S"]
    assert whole.argmin() + 1 == values["E_whole"] == 1


@given(L=sizes, d0=sizes, alpha=overheads)
def test_a_second_expert_always_costs_more(L, d0, alpha):
    rest = 0.75 * L * d0**2 + 3 * alpha
    for ref, factor in zip(FORMS, (4.5, 0.5), strict=True):
        step = evaluated(ref, L=L, d0=d0, alpha=alpha)["S_step"]
        scale = evaluated(ref, L=L, d0=d0, alpha=alpha, E=2)["S"]
        assert step == pytest.approx(factor * L**2 * d0 + rest, rel=1e-9, abs=1e-12 * scale)
    # More than one expert even as a real number needs a small overhead.
    optimum = evaluated(L=L, d0=d0, alpha=alpha)["E_opt"]
    if abs(alpha / (1.5 * L * d0**2) - 1) > 1e-6 and alpha > 1e-6 * L * d0**2:
        assert (optimum > 1) == (alpha < 1.5 * L * d0**2)


@given(E=st.floats(1, 1000), L=sizes, d0=sizes)
def test_factors_are_ratios_of_costs_and_below_1(E, L, d0):
    values = evaluated(L=L, d0=d0, alpha=0, E=E)
    attention = values["attention_before"] + values["attention_experts"]
    assert E * 3 * L * d0**2 / values["projections"] == pytest.approx(
        float(values["projection_factor"]), rel=1e-9
    )
    assert E * 2 * L**2 * d0 / attention == pytest.approx(float(values["attention_factor"]))
    traditional = E * (3 * L * d0**2 + 2 * L**2 * d0)
    assert traditional / values["S"] == pytest.approx(float(values["total_factor"]), rel=1e-9)
    factors = [values[f"{name}_factor"] for name in ("projection", "attention", "total")]
    assert all(0 < factor < 1 for factor in factors)
    printed = evaluated("sectional.cost:printed", L=L, d0=d0, alpha=0, E=E)
    # Eq 2 as printed halves the traditional attention, Eq 14 as printed has E in place of E^2.
    from_14 = E * L**2 * d0 / (printed["attention_before"] + printed["attention_experts"])
    assert printed["attention_factor_eq14"] == pytest.approx(float(from_14), rel=1e-9)


def test_printed_eq_21_is_the_derivative_of_neither_cost():
    root = float(evaluated("sectional.cost:printed", **SHAPE, alpha=1e8)["E_opt_eq21"])
    slope = 3 * 4096**3 * (1 - 2 / root**4) + 2 * 4096**3 * (1 - 2 / root**3) + 2e8 * root
    assert slope / 4096**3 == pytest.approx(0, abs=1e-12)  # it solves Eq 21 as printed
    for printed in (False, True):
        h = 1e-5
        high, low = (cost.cost(root + x, 4096, 4096, 1e8, printed) for x in (h, -h))
        rise = high - low
        assert abs(rise / (2 * h)) / 4096**3 > 0.1


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


def verdict_on(claim):
    return SimpleNamespace(**judged(STUDY, CLAIMS[claim], Inputs(frame=None)))


@pytest.mark.parametrize("claim", VERDICTS)
def test_verdicts_need_no_run(claim):
    judgement = verdict_on(claim)
    assert judgement.verdict == VERDICTS[claim]
    assert judgement.value is not None


def test_the_extremes_lie_where_sequences_are_short_and_alpha_is_0():
    E, L, d0 = 8.0, 128.0, 32768.0
    second = cost.cost(2, L, d0, 0.0) / cost.cost(1, L, d0, 0.0)
    assert verdict_on("sections_save_compute").value == pytest.approx(second, rel=1e-9)
    assert second > 1.125
    traditional = E * (3 * L * d0**2 + 2 * L**2 * d0) / cost.cost(E, L, d0, 0.0)
    largest = verdict_on("cheaper_than_traditional_experts").value
    assert largest == pytest.approx(traditional, rel=1e-9)
    assert "below 1.26" in verdict_on("larger_models_take_more_experts").measured


def test_a_model_in_which_experts_pay_would_be_supported(monkeypatch):
    """The rules can say yes: a cost that falls with E, and an optimum that grows with the shape."""

    class Cheaper:
        def evaluate(self, params, columns):
            L, d0, E = columns["L"], columns["d0"], columns.get("E", 1.0)
            whole = np.log2(L) + np.log2(d0) + 0 * columns["alpha"]
            return {"S": L * d0 / E, "E_whole": whole, "E_opt": whole, "total_factor": L * 0 + E,
                    "projection_factor": E**2 * np.ones_like(L)}  # fmt: skip

    monkeypatch.setattr(cost, "LAW", Cheaper())
    monkeypatch.setattr(cost, "VARIANTS", {"printed": Cheaper()})
    for claim in list(VERDICTS)[:4]:
        assert verdict_on(claim).verdict == Verdict.SUPPORTED, claim


@pytest.mark.parametrize("figure", ["cost", "E_opt", "reduction"])
def test_figures_of_the_model_need_no_run_and_say_what_is_published(figure):
    sheet = make(STUDY, figure, Inputs(frame=None))
    assert_legible(sheet)
    assert "DATA" not in words(sheet)
    assert "published" in words(sheet)
    assert not sheet.warnings
