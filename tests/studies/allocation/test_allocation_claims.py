"""The allocation paper's claims and the trends that they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from allocation_case import ONE, PAPER, STUDY, simulate
from moelaws.analysis.derive import derive
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import contrast
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judge, judged


def test_contrast_has_students_interval():
    """One observation of freedom: t of 0.95 is 6.3138, so the interval is known in closed form."""
    X = np.column_stack([np.ones(3), [-1.0, 0.0, 1.0]])
    y = np.array([0.0, 1.0, 1.0])
    trend = contrast(X, y, np.array([0.0, 1.0]))
    residual = y - X @ [2 / 3, 0.5]
    error = np.sqrt(np.sum(residual**2) / 1 / 2)
    assert trend.value == pytest.approx(0.5)
    assert trend.high - trend.value == pytest.approx(6.3138 * error, rel=0.05)
    assert trend.value - trend.low == pytest.approx(6.3138 * error, rel=0.05)


SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict
FITTED = ("beats_baselines",)
CLAIMS = {claim.name: claim for claim in STUDY.claims}


def verdict(claim, runs, tmp_path):
    """The verdict on a claim that rests on the runs and r* alone."""
    path = tmp_path / "r_star.parquet"
    derive(STUDY, "r_star", Inputs(frame=runs), path)
    return judged(STUDY, CLAIMS[claim], Inputs(frame=runs, derived_tables={"r_star": path}))


def valleys(exponent, of_sparsity, depth=0.1):
    """Runs whose r* is 0.5 (C/3e19)^exponent ((1-S)/0.06)^of_sparsity."""
    runs = simulate(replace(PAPER, noise=0.0))
    at = 0.5 * (runs["C"] / 3e19) ** exponent * ((1 - runs["S_shared"]) / 0.06) ** of_sparsity
    noise = np.random.default_rng(0).normal(0, 1e-3, len(runs))
    return runs.assign(L=3 + depth * np.log(runs["r"] / at) ** 2 + noise)


@pytest.mark.parametrize(
    ("exponent", "expected"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED), (0.0, CANNOT_TELL)]
)
def test_the_ratio_rises_falls_or_stays(exponent, expected, tmp_path):
    claim = verdict("ratio_rises", valleys(exponent, 0.0), tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(exponent, abs=0.03)


@pytest.mark.parametrize(("of_sparsity", "expected"), [(0.2, SUPPORTED), (-0.2, NOT_SUPPORTED)])
def test_denser_models_want_more_or_fewer_experts(of_sparsity, expected, tmp_path):
    claim = verdict("more_experts_when_denser", valleys(0.0, of_sparsity), tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(of_sparsity, abs=0.05)


@pytest.mark.parametrize("name", ["ratio_rises", "more_experts_when_denser", "steeper_when_denser"])
def test_ratios_at_the_ends_of_the_grid_decide_nothing(name, tmp_path):
    runs = valleys(0.1, 0.0)
    runs = runs[runs["r"] >= 0.6].reset_index(drop=True)  # most optima lie below
    claim = verdict(name, runs, tmp_path)
    assert claim["verdict"] == CANNOT_TELL
    assert "are an end of the ratios measured" in claim["measured"]
    assert "ratios beyond the ends" in claim["needed"]


@pytest.mark.parametrize(("sign", "expected"), [(1, SUPPORTED), (-1, NOT_SUPPORTED)])
def test_steeper_where_denser_is_the_difference_of_two_exponents(sign, expected, tmp_path):
    runs = simulate(replace(PAPER, noise=0.0))
    exponent = 0.1 + sign * 0.1 * (runs["S_shared"] < 0.92)
    at = 0.5 * (runs["C"] / 3e19) ** exponent
    runs = runs.assign(L=3 + np.log(runs["r"] / at) ** 2)
    claim = verdict("steeper_when_denser", runs, tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(sign * 0.1, abs=0.04)


@pytest.mark.parametrize(("depth", "expected"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED)])
def test_a_valley_and_a_ridge_have_opposite_verdicts(depth, expected, tmp_path):
    claim = verdict("valley", valleys(0.0, 0.0, depth), tmp_path)
    assert claim["verdict"] == expected
    # From r* = 0.5 to the ends 0.2 and 1.5 of the grid; the smaller slope is the value.
    assert claim["value"] == pytest.approx(2 * depth * np.log(2.5 if depth > 0 else 3), rel=0.05)


@pytest.mark.parametrize("useless", ["attention", "experts"])
def test_a_loss_that_falls_or_rises_all_the_way_is_no_valley(useless, tmp_path):
    """Eq 3 with one of its terms alone: convex in ln r, and without a minimum."""
    runs = valleys(0.0, 0.0, 0.0)
    share = runs["r"] / (1 + runs["r"]) if useless == "attention" else 1 / (1 + runs["r"])
    claim = verdict("valley", runs.assign(L=runs["L"] + share**-0.2), tmp_path)
    assert claim["verdict"] == NOT_SUPPORTED


@pytest.mark.parametrize(("best", "expected"), [
    (lambda S: np.where(S < 0.93, 1.25, 0.5), SUPPORTED),
    (lambda S: np.full(len(S), 0.5), NOT_SUPPORTED),  # one r* for all sparsities
    (lambda S: np.where(S < 0.93, 1.25, 0.95), CANNOT_TELL),  # 0.9 may be up to 1.04
])  # fmt: skip
def test_r_star_crosses_one_only_where_the_midpoints_of_the_grid_do(best, expected, tmp_path):
    runs = valleys(0.0, 0.0)
    L = 3 + 0.1 * np.log(runs["r"] / best(runs["S_shared"])) ** 2
    noise = np.random.default_rng(1).normal(0, 1e-3, len(runs))
    assert verdict("crosses_one", runs.assign(L=L + noise), tmp_path)["verdict"] == expected


def test_where_all_r_star_are_one_ratio_their_trends_are_not_refuted(tmp_path):
    """The fit has no residual then, and an interval of no width is no evidence."""
    runs = simulate(replace(PAPER, noise=0.0))
    noise = np.random.default_rng(0).normal(0, 1e-4, len(runs))
    runs = runs.assign(L=3 + np.log(runs["r"] / 0.65) ** 2 + noise)
    for name in ("ratio_rises", "more_experts_when_denser", "steeper_when_denser"):
        assert verdict(name, runs, tmp_path)["verdict"] == CANNOT_TELL


@pytest.mark.parametrize(("depth", "expected"), [(6.0, SUPPORTED), (0.1, NOT_SUPPORTED)])
def test_what_20_percent_costs_is_held_against_half_of_the_printed(depth, expected, tmp_path):
    runs = valleys(0.0, 0.0, depth)
    large = runs.assign(C=runs["C"] * 1e20 / runs["C"].max())
    small = runs.assign(C=runs["C"] * 1e18 / runs["C"].max())  # nothing is claimed there
    undecided = verdict("costly_misallocation", small, tmp_path)
    assert (undecided["verdict"], undecided["needed"]) == (
        CANNOT_TELL, "budgets near 2e20 FLOPs: tier paper",
    )  # fmt: skip
    claim = verdict("costly_misallocation", large, tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(depth * np.log(1.2) ** 2, rel=0.05)


def test_eq_2_beats_baselines_on_losses_of_its_own(paper, tmp_path):
    claim = judged(STUDY, CLAIMS["beats_baselines"], paper.inputs)
    assert claim["verdict"] == SUPPORTED
    assert claim["low"] > 0
    # Losses that it misses by more than they differ say that the runs fitted do not determine it.
    runs, path = paper.inputs.derived("runs"), tmp_path / "runs.parquet"
    sparsest = runs["S"] == runs["S"].max()
    runs.assign(L=runs["L"].where(~sparsest, 2 + runs["L"])).to_parquet(path)
    far = replace(paper.inputs, derived_tables=paper.inputs.derived_tables | {"runs": path})
    claim = judged(STUDY, CLAIMS["beats_baselines"], far)
    assert (claim["verdict"], claim["value"]) == (CANNOT_TELL, None)
    assert "more than they differ from their mean" in claim["measured"]


@pytest.mark.parametrize("name", [name for name in CLAIMS if name not in FITTED])
def test_too_few_runs_are_no_verdict(name, tmp_path):
    claim = verdict(name, simulate(replace(ONE, budgets=(1e20,))), tmp_path)
    assert claim["verdict"] == CANNOT_TELL
    assert claim["needed"]
    assert "nan" not in claim["measured"]


def test_a_noisy_demo_has_numbers_for_every_claim(poor):
    for claim in judge(STUDY, poor.inputs)["claims"]:
        # No model of the demo is above 95 % sparse, and so few runs do not determine Eq 2.
        if claim["name"] not in ("crosses_one", "beats_baselines"):
            assert claim["value"] is not None
        assert "nan" not in claim["measured"]
