"""The leverage study's grids beside what the paper prints of its models."""

from collections import defaultdict
from statistics import mean, pstdev

import numpy as np
import pandas as pd
import pytest
from leverage_case import TEXT

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.expand import expand
from moelaws.laws.leverage.allocation import LAW
from moelaws.spec.project import load_study
from moelaws.studies.leverage.derived.points import BEYOND
from moelaws.studies.leverage.derived.series import attention_fraction
from moelaws.studies.leverage.laws import joint
from moelaws.tables.describe import describe
from repository import REPOSITORY

SIZES = {2e18: 384, 6e18: 512, 2e19: 640, 6e19: 768, 2e20: 1024, 6e20: 1280}


@pytest.fixture(scope="module")
def runs():
    """The paper tier's runs by sweep."""
    by_sweep = defaultdict(list)
    for run in expand(load_study("leverage", REPOSITORY).grids["paper"], TEXT, "leverage"):
        for name in run.sweeps:
            by_sweep[name].append(run)
    return by_sweep


def test_tables_8_to_14_have_their_rows_and_each_size_its_budgets_up_to_the_printed_one(runs):
    """Tables 8 to 10 print a largest budget for each size; "all models train for up to 3e20"."""
    pairs = 41
    assert {name: len(own) for name, own in runs.items()} == {
        "dense": pairs, "activation": 8 * pairs, "granularity": 6 * pairs,
        "granularity_weak": 6 * pairs, "shared": 7 * pairs,
        "dense_layers": 24, "attention": 30, "heads": 26, "validation": 2,
    }  # fmt: skip
    budgets = [1e18, 2e18, 3e18, 6e18, 1e19, 2e19, 3e19, 6e19, 1e20, 2e20, 3e20]
    printed = {(d, C) for largest, d in SIZES.items() for C in budgets if C <= largest}
    for name in ("dense", "activation", "granularity", "granularity_weak", "shared"):
        assert {(run.config.model.d_model, run.C) for run in runs[name]} == printed


def test_eq_4_has_as_many_points_above_6_as_the_paper_where_curves_are_extrapolated(runs):
    """Figure 5: 200 points below an EL of 6 and 24 above. The paper prints no budgets."""
    C = np.array(sorted({run.C for run in runs["dense"]}))
    C = np.concatenate([C, C[-1] * np.array(BEYOND)])
    assert C[-1] == pytest.approx(1e22)  # of Figure 1
    shapes = {
        (name, ffn.top_k / ffn.n_experts, 2.0 if name == "activation" else ffn.top_k)
        for name in ("activation", "granularity")
        for ffn in (run.config.model.ffn for run in runs[name])
    }
    EL = [joint.LAW.predict(joint.LAW.published, {"A": A, "G": G, "C": C}) for _, A, G in shapes]
    assert (len(shapes), np.size(EL), int(np.sum(np.array(EL) >= 6))) == (14, 238, 23)
    at_trained = joint.LAW.predict(joint.LAW.published, {"A": 1 / 128, "G": 2.0, "C": 3e20})
    assert at_trained == pytest.approx(4.93612, abs=1e-4)  # none of 6 where models were trained


def test_every_tier_has_the_papers_gates_and_its_count_of_flops():
    """App D: gates are a softmax over all experts. App I: M counts no router."""
    for study in ("leverage", "hyperparameters"):
        for tier, grid in load_study(study, REPOSITORY).grids.items():
            runs = expand(grid, TEXT, study)
            of_ours = {"gates"} if tier == "workstation" else set()
            gates = {r.config.model.gates for r in runs if not of_ours & set(r.sweeps)}
            assert gates <= {"all", "none"}
            if grid.derive.steps.convention == "leverage_no_router":
                run = max(runs, key=lambda r: r.config.steps)
                M = train_flops_per_token(run.config.model, "leverage_no_router")
                assert M * run.config.tokens == pytest.approx(run.C, rel=1e-3)
            else:
                assert (study, tier) == ("hyperparameters", "workstation")  # Eq 9, without it, too


def test_table_8_and_what_the_paper_says_of_its_training(runs):
    at_its_largest = {d: min(C, 3e20) for C, d in SIZES.items()}
    E64 = [
        run
        for run in runs["activation"]
        if run.config.model.ffn.n_experts == 64
        and run.C == at_its_largest[run.config.model.d_model]
    ]
    overtrained = defaultdict(list)
    for run, largest in zip(E64, SIZES, strict=True):
        for convention in ("leverage", "leverage_no_router"):
            M = train_flops_per_token(run.config.model, convention)
            best_at = (M / LAW.published["M_coefficient"]) ** (
                1 / LAW.published["M_exponent"]
            )  # compute
            overtrained[convention].append(largest / best_at)
    # "More than three times the optimal tokens", by either count.
    assert overtrained["leverage"] == pytest.approx([3.21, 4.03, 4.65, 4.12, 4.47, 3.58], abs=0.02)
    assert min(overtrained["leverage_no_router"]) > 3
    assert train_flops_per_token(E64[-1].config.model, "leverage") == pytest.approx(3.8604e9, 1e-4)
    assert [run.config.model.ffn.d_expert for run in E64] == [320, 512, 640, 768, 1024, 1280]
    assert [run.config.batch for run in E64] == [98, 147, 228, 342, 531, 795]
    assert [run.config.optimizer.lr for run in E64] == [
        1.52e-3, 1.31e-3, 1.11e-3, 9.5e-4, 8.1e-4, 7.0e-4,
    ]  # fmt: skip
    one = E64[0].config
    assert (one.optimizer.beta1, one.optimizer.beta2, one.optimizer.weight_decay) == (
        0.9,
        0.95,
        0.1,
    )
    assert (one.schedule.kind, one.schedule.warmup, one.schedule.final) == ("wsd", 0.01, 0.1)
    assert (one.model.init_std, one.model.context, one.model.vocab_size) == (0.006, 4096, 126_464)
    assert (one.model.ffn.load_balance, one.model.ffn.router_z) == (0.01, 0.001)


def test_table_9_holds_the_activation_ratio_and_rounds_widths_down(runs):
    widths = defaultdict(list)
    for run in runs["granularity"]:
        if run.C != 1e18:  # each size has one row of the table
            continue
        ffn = run.config.model.ffn
        active = (ffn.top_k + ffn.n_shared) / (ffn.n_experts + ffn.n_shared)
        assert active == pytest.approx(3 / 65)
        widths[run.config.model.d_model].append(ffn.d_expert)
    assert widths[640] == [640, 320, 213, 160, 106, 80]
    assert widths[768] == [768, 384, 256, 192, 128, 96]  # of which Table 15 has the last four
    assert widths[1024] == [1024, 512, 341, 256, 170, 128]
    assert widths[1280] == [1280, 640, 426, 320, 213, 160]


def test_table_10_keeps_twelve_active_experts_and_has_the_row_it_leaves_out(runs):
    experts = {(r.config.model.ffn.top_k, r.config.model.ffn.n_shared) for r in runs["shared"]}
    assert experts == {(2, 10), (4, 8), (6, 6), (8, 4), (10, 2), (11, 1), (12, 0)}
    assert {2 * r.config.model.d_model / r.config.model.ffn.d_expert for r in runs["shared"]} == {8}


def test_table_12_gives_attention_the_shares_of_figure_14(runs):
    """App F.4 speaks of 20 to 50 %: Eq 10 to 12 count the logits, without which it is 42 to 83."""
    described = pd.DataFrame([describe(run) for run in runs["attention"]])
    share = attention_fraction(described)
    assert (share.min(), share.max()) == pytest.approx((0.304, 0.474), abs=1e-3)


def flops_by_budget(runs, convention="leverage"):
    """FLOPs a token of the runs, in a list for each budget."""
    by_budget = defaultdict(list)
    for run in runs:
        by_budget[run.C].append(train_flops_per_token(run.config.model, convention))
    return list(by_budget.values())


@pytest.mark.parametrize(("sweep", "spread"), [("attention", 0.003), ("dense_layers", 0.03)])
def test_flops_a_token_are_constant_where_the_paper_says_so(runs, sweep, spread):
    """Table 12 to rounding; Table 11's dense layers lack their routers alone (E1.10)."""
    groups = flops_by_budget(runs[sweep])
    assert len(groups) == 6
    assert all(max(M) / min(M) - 1 < spread for M in groups)


def test_table_12_is_most_constant_with_the_router_which_app_i_does_not_count(runs):
    """Mean variation over its six groups: .030 % with the router, .039 % without."""
    for convention, printed in (("leverage", 0.030), ("leverage_no_router", 0.039)):
        groups = flops_by_budget(runs["attention"], convention)
        variation = 100 * mean(pstdev(M) / mean(M) for M in groups)
        assert variation == pytest.approx(printed, abs=5e-4)


def test_table_1_is_dense_6b_and_moe_mini(runs):
    """Their FLOPs a token are those of the models in tests/accounting (E1.6)."""
    flops = [train_flops_per_token(run.config.model, "leverage") for run in runs["validation"]]
    assert flops == pytest.approx([42_278_584_320, 7_046_430_720], rel=1e-9)
    dense, mini = (describe(run) for run in runs["validation"])
    assert mini["N_total_nonemb"] == pytest.approx(17.5144e9, rel=1e-4)  # printed: 17.5B
    assert [dense["D"], mini["D"]] == pytest.approx([1e12, 1e12], rel=1e-3)
    assert mini["G"] == pytest.approx(32 / 3)


@pytest.mark.parametrize("tier", ["demo", "node"])
def test_smaller_tiers_hold_flops_where_they_compare(tier):
    runs = expand(load_study("leverage", REPOSITORY).grids[tier], TEXT, "leverage")
    attention = flops_by_budget(run for run in runs if "attention" in run.sweeps)
    assert all(max(M) / min(M) < 1.015 for M in attention)
    assert {name for run in runs for name in run.sweeps} == {
        "dense", "activation", "granularity", "granularity_weak", "shared", "dense_layers",
        "attention", "heads", "validation",
    }  # fmt: skip
    dense = {run.C for run in runs if "dense" in run.sweeps}
    assert max(dense) > max(run.C for run in runs if "activation" in run.sweeps)
