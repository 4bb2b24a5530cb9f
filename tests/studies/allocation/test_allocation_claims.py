"""What runs say of the allocation paper's claims: each verdict can come out each way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from allocation_case import BASELINES, ONE, PAPER, POOR, STUDY, Case, simulate, write_case

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judge, judged

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = Verdict
CLAIMS = {claim.name: claim for claim in STUDY.claims}


def verdict(claim: str, runs: pd.DataFrame, tmp_path: Path) -> dict[str, Any]:
    """The verdict on a claim that rests on the runs and r* alone."""
    path = tmp_path / "r_star.parquet"
    derive(STUDY, "r_star", Inputs(frame=runs), path)
    return judged(STUDY, CLAIMS[claim], Inputs(frame=runs, derived_tables={"r_star": path}))


def valleys(exponent: float, of_sparsity: float, depth: float = 0.1) -> pd.DataFrame:
    """Runs whose r* is 0.5 (C/3e19)^exponent ((1-S)/0.06)^of_sparsity."""
    runs = simulate(replace(PAPER, noise=0.0))
    at = 0.5 * (runs["C"] / 3e19) ** exponent * ((1 - runs["S_shared"]) / 0.06) ** of_sparsity
    noise = np.random.default_rng(0).normal(0, 1e-3, len(runs))
    return runs.assign(L=3 + depth * np.log(runs["r"] / at) ** 2 + noise)


@pytest.mark.parametrize(
    ("exponent", "expected"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED), (0.0, CANNOT_TELL)]
)
def test_the_ratio_rises_falls_or_stays(exponent: float, expected: str, tmp_path: Path) -> None:
    claim = verdict("ratio_rises", valleys(exponent, 0.0), tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(exponent, abs=0.03)


@pytest.mark.parametrize(("of_sparsity", "expected"), [(0.2, SUPPORTED), (-0.2, NOT_SUPPORTED)])
def test_denser_models_want_more_or_fewer_experts(
    of_sparsity: float, expected: str, tmp_path: Path
) -> None:
    claim = verdict("more_experts_when_denser", valleys(0.0, of_sparsity), tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(of_sparsity, abs=0.05)


@pytest.mark.parametrize("name", ["ratio_rises", "more_experts_when_denser", "steeper_when_denser"])
def test_ratios_at_the_ends_of_the_grid_decide_nothing(name: str, tmp_path: Path) -> None:
    runs = valleys(0.1, 0.0)
    runs = runs[runs["r"] >= 0.6].reset_index(drop=True)  # most optima lie below
    claim = verdict(name, runs, tmp_path)
    assert claim["verdict"] == CANNOT_TELL
    assert "are an end of the ratios measured" in claim["measured"]
    assert "ratios beyond the ends" in claim["needed"]


@pytest.mark.parametrize(("sign", "expected"), [(1, SUPPORTED), (-1, NOT_SUPPORTED)])
def test_steeper_where_denser_is_the_difference_of_two_exponents(
    sign: int, expected: str, tmp_path: Path
) -> None:
    runs = simulate(replace(PAPER, noise=0.0))
    exponent = 0.1 + sign * 0.1 * (runs["S_shared"] < 0.92)
    at = 0.5 * (runs["C"] / 3e19) ** exponent
    runs = runs.assign(L=3 + np.log(runs["r"] / at) ** 2)
    claim = verdict("steeper_when_denser", runs, tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(sign * 0.1, abs=0.04)


@pytest.mark.parametrize(("depth", "expected"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED)])
def test_a_valley_and_a_ridge_are_told_apart(depth: float, expected: str, tmp_path: Path) -> None:
    claim = verdict("valley", valleys(0.0, 0.0, depth), tmp_path)
    assert claim["verdict"] == expected
    assert claim["value"] == pytest.approx(depth, rel=0.05)


def test_noise_hides_a_shallow_valley(tmp_path: Path) -> None:
    runs = valleys(0.0, 0.0, 1e-3)
    noise = np.random.default_rng(5).normal(0, 0.1, len(runs))
    noisy = runs.assign(L=runs["L"] + noise)
    assert verdict("valley", noisy, tmp_path)["verdict"] == CANNOT_TELL


@pytest.mark.parametrize(("depth", "expected"), [(6.0, SUPPORTED), (0.1, NOT_SUPPORTED)])
def test_what_20_percent_costs_is_held_against_half_of_the_printed(
    depth: float, expected: str, tmp_path: Path
) -> None:
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


def test_eq_2_beats_baselines_on_losses_of_its_own(paper: Case) -> None:
    claim = judged(STUDY, CLAIMS["beats_baselines"], paper.inputs)
    assert claim["verdict"] == SUPPORTED
    assert claim["low"] > 0


def test_eq_2_loses_to_a_baseline_that_is_right(tmp_path: Path) -> None:
    """Losses of Wang's law as the case has it: the coefficients of Eq 2 do not fit them."""
    runs = simulate(replace(PAPER, noise=0.0))
    columns = {"N": runs["N_total"], "D": runs["D"], "E": runs["E"] + 1}
    L = laws.fittable("wang.loss").predict(BASELINES["wang"], columns)
    valley = 1e-6 * np.log(runs["r"] / 0.6) ** 2
    case = write_case(tmp_path, runs.assign(L=L + valley))
    claim = judged(STUDY, CLAIMS["beats_baselines"], case.inputs)
    assert claim["verdict"] == NOT_SUPPORTED
    assert claim["high"] < 0


@pytest.mark.parametrize("name", [name for name in CLAIMS if name != "beats_baselines"])
def test_too_few_runs_are_no_verdict(name: str, tmp_path: Path) -> None:
    claim = verdict(name, simulate(replace(ONE, budgets=(1e20,))), tmp_path)
    assert claim["verdict"] == CANNOT_TELL
    assert claim["needed"]
    assert "nan" not in claim["measured"]


def test_a_noisy_demo_has_numbers_for_every_claim(tmp_path: Path) -> None:
    case = write_case(tmp_path, simulate(replace(POOR, noise=0.05)))
    for claim in judge(STUDY, case.inputs)["claims"]:
        assert claim["value"] is not None
        assert "nan" not in claim["measured"]
