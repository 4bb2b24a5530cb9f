"""The leverage study's grids beside what the paper prints of its models."""

from collections import Counter, defaultdict

import pytest

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.laws.leverage.allocation import MOE
from moelaws.spec.corpus import Text
from moelaws.spec.project import load_study
from moelaws.tables.describe import describe
from repository import REPOSITORY

TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.1, seed=0)
SIZES = {2e18: 384, 6e18: 512, 2e19: 640, 6e19: 768, 2e20: 1024, 6e20: 1280}


@pytest.fixture(scope="module")
def runs():
    """The paper tier's runs by sweep."""
    by_sweep = defaultdict(list)
    for run in expand(load_study("leverage", REPOSITORY).grids["paper"], TEXT, "leverage"):
        for name in run.sweeps:
            by_sweep[name].append(run)
    return by_sweep


def test_tables_8_to_14_have_their_rows(runs):
    rows = {name: len(own) for name, own in runs.items()}
    assert rows == {
        "dense": 6, "activation": 48, "granularity": 36, "granularity_weak": 36, "shared": 42,
        "dense_layers": 24, "attention": 30, "heads": 26, "validation": 2,
    }  # fmt: skip


def test_table_8_and_what_the_paper_says_of_its_training(runs):
    E64 = [run for run in runs["activation"] if run.config.model.ffn.n_experts == 64]
    overtrained = []
    for run in E64:
        M = train_flops_per_token(run.config.model, "leverage")
        best_at = (M / MOE["M_coefficient"]) ** (1 / MOE["M_exponent"])  # compute
        overtrained.append(run.config.tokens / (best_at / M))
        assert M * run.config.tokens == pytest.approx(run.C, rel=1e-3)
    # "More than three times the optimal tokens", by the count that makes this so.
    assert overtrained == pytest.approx([3.21, 4.03, 4.65, 4.12, 4.47, 3.58], abs=0.02)
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
        ffn = run.config.model.ffn
        assert ffn.activation == pytest.approx(3 / 65)
        widths[run.config.model.d_model].append(ffn.d_expert)
    assert widths[640] == [640, 320, 213, 160, 106, 80]
    assert widths[1024] == [1024, 512, 341, 256, 170, 128]
    assert widths[1280] == [1280, 640, 426, 320, 213, 160]


def test_table_10_keeps_twelve_active_experts_and_has_the_row_it_leaves_out(runs):
    experts = {(r.config.model.ffn.top_k, r.config.model.ffn.n_shared) for r in runs["shared"]}
    assert experts == {(2, 10), (4, 8), (6, 6), (8, 4), (10, 2), (11, 1), (12, 0)}
    assert {2 * r.config.model.d_model / r.config.model.ffn.d_expert for r in runs["shared"]} == {8}


@pytest.mark.parametrize(("sweep", "spread"), [("attention", 0.003), ("dense_layers", 0.03)])
def test_flops_a_token_are_constant_where_the_paper_says_so(runs, sweep, spread):
    """Table 12 to rounding; Table 11's dense layers lack their routers alone (E1.10)."""
    by_size = defaultdict(list)
    for run in runs[sweep]:
        by_size[run.C].append(train_flops_per_token(run.config.model, "leverage"))
    assert len(by_size) == 6
    for M in by_size.values():
        assert max(M) / min(M) - 1 < spread


def test_table_9_contains_table_15(runs):
    widths = {
        r.config.model.ffn.n_experts: r.config.model.ffn.d_expert
        for r in runs["granularity"]
        if r.C == 6e19
    }
    assert {E: widths[E] for E in (192, 256, 384, 512)} == {192: 256, 256: 192, 384: 128, 512: 96}


def test_table_1_is_dense_6b_and_moe_mini(runs):
    dense, mini = (describe(run) for run in runs["validation"])
    assert dense["N_total_nonemb"] == pytest.approx(6_106_906_624, rel=1e-4)  # and its norms
    assert mini["N_total_nonemb"] == pytest.approx(17.5144e9, rel=1e-4)  # printed: 17.5B
    assert mini["N_active_nonemb"] == pytest.approx(0.8389e9, rel=1e-3)  # printed: 0.85B
    for run in runs["validation"]:
        assert run.config.tokens == pytest.approx(1e12, rel=1e-3)
    ratio = dense["C_leverage"] / mini["C_leverage"]
    assert ratio == pytest.approx(6.0, abs=0.005)  # E1.6: not "more than 7"
    assert mini["G"] == pytest.approx(32 / 3)


@pytest.mark.parametrize("tier", ["demo", "gpu"])
def test_smaller_tiers_hold_flops_where_they_compare(tier):
    runs = expand(load_study("leverage", REPOSITORY).grids[tier], TEXT, "leverage")
    shapes = defaultdict(set)
    for run in runs:
        if "attention" in run.sweeps:
            shapes[run.C].add(train_flops_per_token(run.config.model, "leverage"))
    assert all(max(M) / min(M) < 1.015 for M in shapes.values())
    swept = Counter(name for run in runs for name in run.sweeps)
    assert set(swept) == {
        "dense", "activation", "granularity", "granularity_weak", "shared", "dense_layers",
        "attention", "heads", "validation",
    }  # fmt: skip
    dense = {run.C for run in runs if "dense" in run.sweeps}
    assert max(dense) > max(run.C for run in runs if "activation" in run.sweeps)
