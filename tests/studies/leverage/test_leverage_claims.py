"""The leverage study's claims: each verdict on data made to deserve it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.spec.project import load_study
from nulls.leverage import BUDGETS as PAPERS
from nulls.leverage import EQ_4, dense_loss, growing, leverages, of_points, over_ratios, pair
from nulls.leverage import bowl as bowls
from repository import REPOSITORY

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict
STUDY = load_study("leverage", REPOSITORY)
CLAIMS = {claim.name: claim for claim in STUDY.claims}
BUDGETS = (1e18, 3e18, 1e19, 3e19)


def sweep(name, loss, noise=1e-4, cv=0.0, **axis):
    """A table of the runs of one sweep: ``loss`` of the axis, times a level a budget.

    The load of the experts varies as the axis to the power ``cv``, with scatter.
    """
    ((column, values),) = axis.items()
    rng = np.random.default_rng(0)
    rows = [
        {column: value, "C": C, "L": 3 * (C / 1e18) ** -0.03 * (1 + loss(value))}
        for C in BUDGETS
        for value in values
    ]
    frame = pd.DataFrame(rows).assign(status="completed", source="trained", sweep=name)
    base = {
        "k": 4, "E_s": 0, "n_layers": 10, "n_dense_layers": 0, "G": 2.0, "r": 1.0, "S": 0.9,
        "C_leverage": 3.0, "D": 1.0, "d_model": 64, "n_heads": 4, "vocab_size": 0,
    }  # fmt: skip
    if column == "E_s":
        base["k"] = 12 - frame["E_s"]
    for key, value in base.items():
        if key not in frame:
            frame[key] = value
    frame["L"] *= np.exp(rng.normal(0, noise, len(frame)))
    frame["balance_cv"] = 0.02 * frame[column] ** cv * np.exp(rng.normal(0, 0.05, len(frame)))
    return Inputs(frame=frame.assign(trunk=np.arange(len(frame)).astype(str)))


def verdict(claim, inputs):
    judgement = judged(STUDY, CLAIMS[claim], inputs)
    assert judgement["measured"]
    assert bool(judgement["needed"]) == (judgement["verdict"] is CANNOT_TELL)
    return judgement["verdict"]


def bowl(best, scale=0.01):
    return lambda G: scale * (np.log2(G) - np.log2(best)) ** 2


FINE, SHARES, RATIOS = (2, 4, 6, 8, 12, 16), (0, 1, 2, 4, 6, 8, 10), (0.5, 1, 1.5, 2, 4)


def share(best):
    return lambda E_s: 0.1 * (E_s / 12 - best) ** 2  # k + E_s = 12


def attention(best, scale):
    return lambda r: scale * (1 / (1 + r) - best) ** 2


def dense(change):
    return lambda n: change * (n > 0)


@pytest.mark.parametrize(
    ("claim", "inputs", "expected"),
    [
        ("best_granularity", sweep("granularity", bowl(10), G=FINE), SUPPORTED),
        ("best_granularity", sweep("granularity", bowl(4), G=FINE), NOT_SUPPORTED),
        # at 16 or beyond, and at 8 or beyond
        ("best_granularity", sweep("granularity", bowl(100), G=FINE), NOT_SUPPORTED),
        ("best_granularity", sweep("granularity", bowl(100), G=(2, 4, 8)), CANNOT_TELL),
        ("best_granularity", sweep("granularity", bowl(10), G=(2, 4)), CANNOT_TELL),
        ("few_shared_experts", sweep("shared", share(0.2), E_s=SHARES), SUPPORTED),
        ("few_shared_experts", sweep("shared", share(0.6), E_s=SHARES), NOT_SUPPORTED),
        ("few_shared_experts", sweep("shared", share(-0.5), E_s=SHARES), NOT_SUPPORTED),
        ("attention_share", sweep("attention", attention(0.4, 0.1), r=RATIOS), SUPPORTED),
        ("attention_share", sweep("attention", attention(0.7, 0.2), r=RATIOS), NOT_SUPPORTED),
        # 35 % was not measured
        (
            "attention_share", sweep("attention", attention(0.7, 0.2), r=(0.2, 0.4, 0.6, 0.8)),
            CANNOT_TELL,
        ),
        *(
            (
                "dense_layers_matter_little",
                sweep("dense_layers", dense(change), noise, n_dense_layers=(0, 1, 2)), expected,
            )
            for change, noise, expected in (
                (0.001, 1e-4, SUPPORTED), (0.03, 1e-4, NOT_SUPPORTED), (0.004, 0.01, CANNOT_TELL),
            )
        ),
        *(
            ("finer_is_less_balanced", sweep("granularity", bowl(8), cv=power, G=FINE), expected)
            for power, expected in ((0.9, SUPPORTED), (-0.9, NOT_SUPPORTED))
        ),
    ],
)  # fmt: skip
def test_a_verdict_follows_where_the_loss_is_least(claim, inputs, expected):
    assert verdict(claim, inputs) is expected


@pytest.mark.parametrize("claim", [name for name, claim in CLAIMS.items() if not claim.fits])
def test_no_runs_decide_nothing(claim):
    assert verdict(claim, sweep("other", bowl(8), G=(2, 4, 8))) is CANNOT_TELL


@pytest.mark.parametrize("best", [1 / 8, 1 / 16])
def test_an_optimum_inside_the_range_refutes_that_sparser_is_better(best):
    for seed in range(5):
        frame = over_ratios(seed, bowls(best, 0.004))
        assert verdict("sparser_is_better", Inputs(frame=frame)) is NOT_SUPPORTED


def test_one_budget_that_turns_refutes_that_sparser_is_better():
    def loss(C, A):
        turned = 1 + 0.0015 * (np.log2(A) + 3) ** 2
        return dense_loss(C) * np.where(PAPERS[0] == C, turned, 1 + 0.008 * np.log2(A))

    evidence = judged(STUDY, CLAIMS["sparser_is_better"], Inputs(frame=over_ratios(0, loss)))
    assert evidence["verdict"] == NOT_SUPPORTED
    assert evidence["low"] > 0  # of all budgets together it falls


def test_a_pair_of_six_times_the_compute_is_read_off_the_scaled_dense_curve(project_folder):
    claim = CLAIMS["matches_seven_times_the_compute"]
    for EL, expected in ((5.0, NOT_SUPPORTED), (9.0, SUPPORTED)):
        one = judged(STUDY, claim, pair(0, EL, noise=1e-6))
        assert one["value"] == pytest.approx(EL, rel=0.01)
        assert one["verdict"] == expected
    small = judged(STUDY, claim, pair(0, 5.0, C=1e20, noise=1e-6))
    assert small["verdict"] == CANNOT_TELL  # the paper expects less at less compute
    assert "or more" in small["measured"]


def test_growth_is_as_unsure_as_trunks_err_which_a_second_seed_says(project_folder):
    inputs = growing(0, 0.1)
    C, E = inputs.frame["C"], inputs.frame["E"].astype(str)
    shared = inputs.frame.assign(trunk=E + (C > 2e19).astype(str))
    alone, twice, once = (
        judged(STUDY, CLAIMS["grows_with_compute"], replace(inputs, frame=frame))
        for frame in (inputs.frame, shared.assign(n_seeds=2, L_seed_sd=0.02), shared)
    )
    assert alone["verdict"] == SUPPORTED
    assert twice["low"] < 0 < alone["low"] < alone["high"] <= twice["high"]
    assert once["verdict"] == CANNOT_TELL
    assert "(no interval)" in once["measured"]


@pytest.mark.slow
def test_a_law_that_steepens_above_4_is_not_predicted(project_folder):
    """By Eq 4, fitted to leverages below 6, those of 6 and more are (sec 4.2.3)."""
    points = leverages(np.random.default_rng(1), curves=0.01)
    steeper = points["EL"] * np.maximum(points["EL"] / 4, 1) ** 2
    judgement = judged(STUDY, CLAIMS[EQ_4], of_points(points.assign(EL=steeper)))
    assert judgement["verdict"] is NOT_SUPPORTED
    assert "are extrapolated" in judgement["measured"]


@pytest.mark.slow
def test_few_points_of_6_decide_nothing(project_folder):
    points = leverages(np.random.default_rng(1))
    few = points[(points["EL"] < 6) | points["architecture"].isin(["5", "6"])]
    assert verdict(EQ_4, of_points(few)) is CANNOT_TELL
