"""What runs say of the allocation paper's claims: each verdict can come out each way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from allocation_case import ONE, PAPER, POOR, TRUE, Case, simulate, write_case
from moelaws.analysis.allocation import r_star
from moelaws.analysis.inputs import Inputs
from moelaws.claims.allocation import CLAIMS
from moelaws.claims.base import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED, Finding, Verdict
from moelaws.tables.parquet import write_table


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return write_case(tmp_path_factory.mktemp("claims"), simulate(PAPER))


def judged(claim: str, runs: pd.DataFrame, tmp_path: Path) -> Finding:
    """A claim that rests on the runs and r* alone."""
    path = tmp_path / "r_star.parquet"
    write_table(r_star.ratios(runs), r_star.COLUMNS, path)
    return CLAIMS[claim].judge(Inputs(runs, {}, {"r_star": path}))


def valleys(exponent: float, of_sparsity: float, depth: float = 0.1) -> pd.DataFrame:
    """Runs whose r* is 0.5 (C/3e19)^exponent ((1-S)/0.06)^of_sparsity."""
    runs = simulate(replace(PAPER, noise=0.0))
    at = 0.5 * (runs["C"] / 3e19) ** exponent * ((1 - runs["S_shared"]) / 0.06) ** of_sparsity
    noise = np.random.default_rng(0).normal(0, 1e-3, len(runs))
    return runs.assign(L=3 + depth * np.log(runs["r"] / at) ** 2 + noise)


def test_every_claim_has_an_entry_and_reads_what_it_declares(paper: Case) -> None:
    assert [entry.id for entry in paper.study.claims] == list(
        dict.fromkeys(entry.id for entry in paper.study.claims)
    )
    assert {entry.id for entry in paper.study.claims} == set(CLAIMS)
    for entry in paper.study.claims:
        finding = CLAIMS[entry.id].judge(paper.of("claims", entry.id))
        assert finding.measured
        assert bool(finding.needed) == (finding.verdict == CANNOT_TELL)


@pytest.mark.parametrize(
    ("exponent", "verdict"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED), (0.0, CANNOT_TELL)]
)
def test_the_ratio_rises_falls_or_stays(exponent: float, verdict: str, tmp_path: Path) -> None:
    finding = judged("ratio_rises", valleys(exponent, 0.0), tmp_path)
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(exponent, abs=0.03)


@pytest.mark.parametrize(("of_sparsity", "verdict"), [(0.2, SUPPORTED), (-0.2, NOT_SUPPORTED)])
def test_denser_models_want_more_or_fewer_experts(
    of_sparsity: float, verdict: str, tmp_path: Path
) -> None:
    finding = judged("more_experts_when_denser", valleys(0.0, of_sparsity), tmp_path)
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(of_sparsity, abs=0.05)


def test_ratios_at_the_ends_of_the_grid_decide_nothing(tmp_path: Path) -> None:
    runs = valleys(0.1, 0.0)
    runs = runs[runs["r"] >= 0.6].reset_index(drop=True)  # most optima lie below
    for claim in ("ratio_rises", "more_experts_when_denser", "steeper_when_denser"):
        finding = judged(claim, runs, tmp_path)
        assert finding.verdict == CANNOT_TELL
        assert "are an end of the ratios measured" in finding.measured
        assert "ratios beyond the ends" in finding.needed


def test_steeper_where_denser_is_the_difference_of_two_exponents(tmp_path: Path) -> None:
    runs = simulate(replace(PAPER, noise=0.0))
    for sign, verdict in ((1, SUPPORTED), (-1, NOT_SUPPORTED)):
        exponent = 0.1 + sign * 0.1 * (runs["S_shared"] < 0.92)
        at = 0.5 * (runs["C"] / 3e19) ** exponent
        finding = judged(
            "steeper_when_denser", runs.assign(L=3 + np.log(runs["r"] / at) ** 2), tmp_path
        )
        assert finding.verdict == verdict
        assert finding.value == pytest.approx(sign * 0.1, abs=0.04)


@pytest.mark.parametrize(("depth", "verdict"), [(0.1, SUPPORTED), (-0.1, NOT_SUPPORTED)])
def test_a_valley_and_a_ridge_are_told_apart(depth: float, verdict: str, tmp_path: Path) -> None:
    finding = judged("valley", valleys(0.0, 0.0, depth), tmp_path)
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(depth, rel=0.05)


def test_noise_hides_a_shallow_valley(tmp_path: Path) -> None:
    runs = valleys(0.0, 0.0, 1e-3)
    noise = np.random.default_rng(5).normal(0, 0.1, len(runs))
    assert judged("valley", runs.assign(L=runs["L"] + noise), tmp_path).verdict == CANNOT_TELL


@pytest.mark.parametrize(("depth", "verdict"), [(6.0, SUPPORTED), (0.1, NOT_SUPPORTED)])
def test_what_20_percent_costs_is_held_against_the_printed(
    depth: float, verdict: str, tmp_path: Path
) -> None:
    runs = valleys(0.0, 0.0, depth)
    large = runs.assign(C=runs["C"] * 1e20 / runs["C"].max())
    small = runs.assign(C=runs["C"] * 1e18 / runs["C"].max())  # nothing is claimed there
    assert judged("costly_misallocation", small, tmp_path).verdict == CANNOT_TELL
    finding = judged("costly_misallocation", large, tmp_path)
    assert finding.verdict == verdict
    assert finding.value == pytest.approx(depth * np.log(1.2) ** 2, rel=0.05)


def test_eq_2_beats_baselines_on_losses_of_its_own(paper: Case) -> None:
    finding = CLAIMS["beats_baselines"].judge(paper.of("claims", "beats_baselines"))
    assert finding.verdict == SUPPORTED
    assert finding.low > 0


def test_eq_2_loses_to_a_baseline_that_is_right(tmp_path: Path) -> None:
    """Losses of Wang's law as the case has it: the coefficients of Eq 2 do not fit them."""
    from allocation_case import BASELINES
    from moelaws import laws

    runs = simulate(replace(PAPER, noise=0.0))
    columns = {"N": runs["N_total"], "D": runs["D"], "E": runs["E"] + 1}
    L = laws.get("wang.loss").predict(BASELINES["wang"], columns)
    valley = 1e-6 * np.log(runs["r"] / 0.6) ** 2
    case = write_case(tmp_path, runs.assign(L=L + valley))
    finding = CLAIMS["beats_baselines"].judge(case.of("claims", "beats_baselines"))
    assert finding.verdict == NOT_SUPPORTED
    assert finding.high < 0


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c != "beats_baselines"])
def test_too_few_runs_are_no_verdict(claim: str, tmp_path: Path) -> None:
    runs = simulate(replace(ONE, budgets=(1e20,)))
    finding = judged(claim, runs, tmp_path)
    assert finding.verdict == CANNOT_TELL
    assert finding.needed
    assert "nan" not in finding.measured


def test_a_noisy_demo_is_judged_without_a_crash(tmp_path: Path) -> None:
    case = write_case(tmp_path, simulate(replace(POOR, noise=0.05)))
    for entry in case.study.claims:
        finding = CLAIMS[entry.id].judge(case.of("claims", entry.id))
        assert finding.verdict in set(Verdict)
        assert "nan" not in finding.measured


def test_the_case_has_a_valley(paper: Case) -> None:
    assert TRUE["c"] > 0
    assert CLAIMS["valley"].judge(paper.of("claims", "valley")).verdict == SUPPORTED
