"""The sectional study's arms: what is read off their runs, and the verdicts on chosen results."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from moelaws.accounting.flops import forward_terms, train_flops_per_token
from moelaws.analysis.regression import Spread
from moelaws.claims.base import Verdict
from moelaws.figures.draw import make, set_table
from moelaws.grids.expand import expand
from moelaws.spec.model import DenseFFN, Model, Slices
from moelaws.studies.sectional.arms import ARMS, CHUNKS, DIVIDED
from moelaws.studies.sectional.derived.arms import SMOOTH, TARGET, smoothed, spikes, steps_to_target
from moelaws.studies.sectional.derived.load import cosine, matched, units
from moelaws.studies.sectional.derived.speeds import section_flops
from moelaws.studies.sectional.run_claims import SECTIONS
from picture import assert_legible
from sectional_case import RUNS, STUDY, TEXT, Case

SLICE_CHUNKS = ("slice_chunks", "rates_slice_chunks")
SUPPORTED, REFUTED, OPEN = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.CANNOT_TELL


@pytest.fixture
def case(tmp_path):
    """Results of the demo grid that a test chooses."""
    return lambda **chosen: Case(tmp_path / "results", **chosen)


def rows(inputs, arm):
    table = inputs.derived("arms")
    return table[table["arm"] == arm]


@pytest.mark.parametrize("tier", STUDY.grids)
def test_all_arms_of_a_size_cost_the_same_and_see_the_same_tokens(tier):
    """Within a hundredth of the FLOPs a token, embeddings aside, which are the same."""
    by_size = defaultdict(list)
    named = set()
    for run in expand(STUDY.grids[tier], TEXT, f"sectional.yaml, grids.{tier}"):
        if set(run.sweeps) & set(ARMS):
            named |= set(run.sweeps)
            model = run.config.model
            cost = train_flops_per_token(model, "leverage"), run.config.tokens
            by_size[model.d_model, model.context].append(cost)
    left_out = {"chunk_balanced"} if tier == "demo" else set()
    assert named >= set(ARMS) - left_out
    for costs in by_size.values():
        flops, tokens = zip(*costs, strict=True)
        assert max(flops) / min(flops) < 1.01
        assert len(set(tokens)) == 1


def test_a_difference_has_the_interval_of_the_spread_between_seeds(case):
    """Two arms of two seeds, with the errors that the case gives them."""
    inputs = case(offset={"slice_all": -0.1}).inputs()
    row, dense = (rows(inputs, arm).iloc[0] for arm in ("slice_all", "dense"))
    assert row["difference"] == pytest.approx(row["L"] - dense["L"])
    assert row["difference"] == pytest.approx(-0.1, abs=0.021)
    reach = stats.t.ppf(0.95, row["freedom"]) * row["seed_sd"]  # of two means of two
    assert row["low"] == pytest.approx(row["difference"] - reach)
    assert row["high"] == pytest.approx(row["difference"] + reach)
    assert 0.005 < row["seed_sd"] < 0.02  # of errors of 0.01, beside a common one of 0.05
    assert row["perplexity"] == pytest.approx(math.exp(row["L"]))


def test_a_run_of_one_seed_is_compared_with_the_dense_run_of_that_seed(case):
    """The second division into layers has seed 0 alone, and seed 1 is worse everywhere."""
    table = rows(case().inputs(), "by_layer")
    assert sorted(table["n_seeds"]) == [1, 1, 2]
    assert (table["difference"].abs() < 0.021).all()


@given(st.integers(2, 6), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_the_spread_between_seeds_leaves_out_what_is_common_to_all_arms(arms, seeds, at):
    """Of a whole table it is the interaction of a two-way analysis of variance."""
    rng = np.random.default_rng(at)
    values = rng.normal(size=(arms, seeds))
    shifted = values + 10 * rng.normal(size=(arms, 1)) + 10 * rng.normal(size=(1, seeds))
    spread = Spread.of([dict(enumerate(row)) for row in shifted])
    means = values.mean(0, keepdims=True) + values.mean(1, keepdims=True) - values.mean()
    assert spread.freedom == (arms - 1) * (seeds - 1)
    assert spread.sd == pytest.approx(
        math.sqrt(np.square(values - means).sum() / spread.freedom), rel=1e-6
    )


def test_the_steps_to_a_target_are_those_of_the_pace(case):
    """The loss falls in a line, so that an arm twice as fast is there in half the steps, but for
    the lag of the average."""
    inputs = case(pace={"slice_all": 2.0, "position": 0.5}).inputs()
    steps = RUNS[0].config.steps
    lag = (round(SMOOTH * steps) - 1) / 2
    expected = ((TARGET * steps - lag) / 2 + lag) / (TARGET * steps)
    fast, slow = rows(inputs, "slice_all").iloc[0], rows(inputs, "position").iloc[0]
    assert fast["steps_ratio"] == pytest.approx(expected, abs=2 / steps)
    assert slow["reached"] == 0
    assert slow["steps_ratio"] == math.inf


def test_smoothing_spikes_and_targets():
    loss = np.linspace(5, 4, 400) + 0.01 * np.sin(np.arange(400))
    assert spikes(loss) == 0
    assert spikes(loss + 3 * np.exp(-np.arange(400) / 5)) == 0  # the fall at the start
    loss[[100, 250]] += 1.0
    assert spikes(loss) == 2
    np.testing.assert_allclose(smoothed(loss)[50], loss[31:51].mean())
    assert smoothed(loss)[0] == loss[0]
    assert steps_to_target(loss, 3.0) == math.inf


def test_the_load_has_both_capacity_factors_and_its_fractions_are_sorted(case):
    inputs = case(counts={"chunk": [2, 16, 4, 4, 0, 4, 2, 0]}).inputs()
    load, shares = (inputs.derived(name, arm="chunk") for name in ("load", "shares"))
    row = load.iloc[0]
    assert row["overflow_1"] == pytest.approx(12 / 32)  # capacity 4
    assert row["overflow_1.25"] == pytest.approx(11 / 32)  # capacity 5
    assert row["unused_1"] == pytest.approx(1 - 20 / 32)
    assert row["never_used"] == 2
    own = shares.sort_values("rank")["share"]
    np.testing.assert_allclose(own, np.array([16, 4, 4, 4, 2, 2, 0, 0]) / 32)


def test_counted_costs_are_those_of_the_products(case):
    """At E = 1 both readings are one full block and a second with a projection behind it."""
    one = section_flops(48, 128, 1, "all")
    assert one == section_flops(48, 128, 1, "chunks")
    ffn = DenseFFN(kind="dense", d_ffn=128)
    shape = {"n_layers": 2, "d_model": 48, "n_heads": 1, "n_kv": 1, "context": 128}
    plain = forward_terms(Model(**shape, vocab_size=1, ffn=ffn))
    expected = 3 * (sum(plain.values()) - plain["logits"] + 2 * 48**2)
    assert one == expected
    four = Slices(n_experts=4, d_expert=32, n_heads=1, positions="chunks")
    terms = forward_terms(Model(**shape, vocab_size=1, ffn=ffn, slices=four))
    four = 3 * (sum(terms.values()) - terms["logits"])
    counted = case().inputs().derived("counted").set_index("E")
    assert counted.loc[4, "chunks_ratio"] == pytest.approx(four / one)
    # S(E) for n tokens tends to the pre-expert block alone: half of S(1), but for its misprint.
    assert counted["corrected_ratio"].iloc[-1] == pytest.approx(0.5, abs=0.01)


def test_experts_that_are_equal_but_for_the_order_of_their_units_match():
    """Two experts of SwiGLU: the order of the units changes the cosine, and not the match."""
    rng = np.random.default_rng(0)
    gate_up, down = rng.normal(size=(1, 6, 20)), rng.normal(size=(1, 10, 6))
    order = rng.permutation(10)
    shuffled = np.concatenate(
        [gate_up[..., :10][..., order], gate_up[..., 10:][..., order]], axis=2
    )
    weights = {
        "w_gate_up": np.concatenate([gate_up, shuffled]),
        "w_down": np.concatenate([down, down[:, order]]),
    }
    both = units(weights, "")
    assert both.shape == (2, 10, 18)
    assert matched(both) == pytest.approx(1)
    assert cosine(both) < 0.5
    negated = both.copy()
    negated[1, :, 6:] *= -1  # up and down: SwiGLU computes the same
    assert matched(negated) == pytest.approx(1)
    assert cosine(both[[0, 0]]) == pytest.approx(1)


def times_of(slices):
    return {"times": {(f"widths_{r}", E): t for r in ("all", "chunks") for E, t in slices.items()}}


# However large a difference is, nothing tells how much another seed would move it.
ONE_SEED = {
    "seeds": 1,
    "offset": {"slice_all": 0.5, "slice_chunks": -0.5, "position": 0.5},
    "pace": {"slice_all": 2.0, "slice_chunks": 0.5},
}
CASES = {
    "slices_need_fewer_flops": [
        ({"slope": -0.2}, SUPPORTED), ({"slope": 0.2}, REFUTED), ({}, OPEN),
    ],
    "slices_beat_dense_and_conventional": [
        ({"offset": {"slice_all": -0.3, "slice_chunks": -0.3}}, SUPPORTED),
        ({"offset": {"slice_all": -0.3, "slice_chunks": 0.3}}, REFUTED),
        # Better than the dense model, but not than one of half the blocks.
        ({"offset": {"slice_all": -0.3, "slice_chunks": -0.3, "shallow": -0.6}}, REFUTED),
        ({"left_out": ("top1", "rates_top1")}, OPEN),
        (ONE_SEED, OPEN),
    ],
    "mixtures_beat_dense": [
        ({"offset": {"top1": -0.3, "top2": -0.3}}, SUPPORTED),
        ({"offset": {"top1": -0.3, "top2": 0.3}}, REFUTED),
        ({"offset": {"top1": -0.3, "top2": -0.3}, "left_out": ("dense", "rates_dense")}, OPEN),
    ],
    "chunks_keep_the_loss": [
        ({"offset": {"position": -0.2, "chunk": -0.2}}, SUPPORTED),
        ({"offset": {"position": 0.2, "chunk": -0.2}}, REFUTED),
        ({"offset": {"position": -0.2}, "left_out": ("chunk", "rates_chunk")}, OPEN),
        (ONE_SEED, OPEN),
    ],
    "sections_read_longer_sequences": [
        ({"beyond": dict.fromkeys(SECTIONS, -0.2)}, SUPPORTED),
        ({"beyond": dict.fromkeys(SECTIONS, -0.2) | {"chunk": 0.2}}, REFUTED),
        ({}, OPEN),
    ],
    "cost_falls_to_an_optimum": [
        (times_of({2: 0.8, 4: 0.7, 8: 0.9}), SUPPORTED),
        (times_of({2: 1.5, 4: 1.5, 8: 1.5}), REFUTED),
        (times_of({2: 0.8, 4: 0.74, 8: 0.741}), OPEN),  # a plateau is no optimum
        ({"times": {("widths_all", 4): 0.5}, "absent": ("widths_chunks",)}, OPEN),
    ],
    "larger_models_carry_more_slices": [
        ({"slope": -0.2}, OPEN),  # the demo has one size
        ({"tier": "workstation", "steeper": {"d_model": -0.2, "context": -0.2}}, SUPPORTED),
        ({"tier": "workstation", "steeper": {"d_model": -0.2, "context": 0.2}}, REFUTED),
        ({"tier": "workstation", "steeper": {"d_model": -0.2}}, OPEN),
    ],
    "sections_generate_faster": [
        ({"latency": dict.fromkeys(("slice_all", "slice_chunks", *CHUNKS), 0.8)}, SUPPORTED),
        ({"latency": {"slice_all": 0.8, "slice_chunks": 0.8, "chunk": 1.2}}, REFUTED),
        ({}, OPEN),
        ({"latency": dict.fromkeys(("slice_all", *CHUNKS), 0.8), "absent": SLICE_CHUNKS}, OPEN),
    ],
    "experts_specialise": [
        ({"drift": dict.fromkeys((*CHUNKS, *DIVIDED), -3.0)}, SUPPORTED),
        ({"drift": dict.fromkeys((*CHUNKS, "both"), -3.0) | {"by_layer": 3.0}}, REFUTED),
        ({"drift": dict.fromkeys((*CHUNKS, "both"), -3.0)}, OPEN),
    ],
    "slices_learn_faster": [
        ({"pace": {"slice_all": 2.0, "slice_chunks": 2.0}}, SUPPORTED),
        ({"pace": {"slice_all": 2.0, "slice_chunks": 2.0, "shallow": 4.0}}, REFUTED),
        ({"pace": {"slice_all": 2.0, "slice_chunks": 0.5}}, REFUTED),
        ({"pace": {"slice_all": 2.0}, "left_out": ("slice_chunks",)}, OPEN),
        (ONE_SEED, OPEN),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "chosen", "verdict"),
    [(claim, chosen, verdict) for claim, cases in CASES.items() for chosen, verdict in cases],
)
def test_a_claim_can_be_supported_and_refuted(case, claim, chosen, verdict):
    judgement = case(**chosen).judge(claim)
    assert judgement["verdict"] == verdict, judgement["measured"]
    assert judgement["needed"] or verdict != OPEN


def test_a_tier_whose_models_fit_no_device_side_by_side_measures_no_speeds():
    left = STUDY.at_tier("paper")
    lost = {entry.name for entry in STUDY.readers} - {entry.name for entry in left.readers}
    assert {"speeds", "experts", "speed", "T_speed", "cost_falls_to_an_optimum"} <= lost
    assert "arms" in {figure.name for figure in left.figures}
    assert "speed" in {figure.name for figure in STUDY.at_tier("gpu").figures}


UNEVEN, EVEN = [8, 8, 4, 4, 4, 4, 0, 0], [5, 5, 4, 4, 4, 4, 3, 3]


@pytest.mark.parametrize(
    ("chunk", "top2", "chosen", "verdict"),
    [
        (UNEVEN, EVEN, {}, REFUTED),
        (EVEN, UNEVEN, {}, SUPPORTED),
        (EVEN, UNEVEN, {"left_out": ("chunk",)}, OPEN),
        (EVEN, UNEVEN, {"seeds": 1}, OPEN),
    ],
)
def test_balance_is_judged_by_seeds_that_agree(case, chunk, top2, chosen, verdict):
    """Equal seeds leave no spread; one seed tells nothing of it."""
    judgement = case(counts={"chunk": chunk, "top2": top2}, **chosen).judge(
        "balanced_without_a_balance_loss"
    )
    assert judgement["verdict"] == verdict, judgement["measured"]
    if verdict != OPEN:
        assert judgement["value"] == pytest.approx(np.std(chunk) / np.std(top2))
        assert "chunks by their place, even by construction: 0" in judgement["measured"]


def test_every_figure_and_table_is_made_and_legible(case):
    uneven = {"chunk": [16, 4, 4, 4, 2, 2, 0, 0]}
    inputs = case(pace={"slice_all": 1.2}, counts=uneven).inputs()
    for figure in STUDY.figures:
        sheet = make(STUDY, figure.name, inputs)
        assert_legible(sheet)
        assert len(sheet.data), figure.name
    for table in STUDY.tables:
        assert len(set_table(STUDY, table.name, inputs).frame), table.name
