"""FLOPs in the papers' conventions, and what runs of one trunk spend."""

import pytest

from moelaws.accounting.cost import CPU, estimate, shared_steps, spent
from moelaws.accounting.flops import attention_and_ffn, forward_terms, train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.model import DenseFFN, Model, MoE
from random_corpus import VOCABULARY, run_of


def moe(sizes, experts, k, width, shared=0, **ffn):
    """A model of ``sizes``: layers, d_model, heads, key-value heads, context, vocabulary."""
    layers, d, heads, kv, context, vocabulary = sizes
    return Model(
        n_layers=layers, d_model=d, n_heads=heads, n_kv=kv, context=context,
        vocab_size=vocabulary,
        ffn=MoE(kind="moe", n_experts=experts, top_k=k, d_expert=width, n_shared=shared, **ffn),
    )  # fmt: skip


# The leverage paper's third base model, with the 64 routed experts of its Table 12.
G3 = moe((10, 640, 10, 2, 4096, 126_464), 64, 2, 640, shared=1)
# Table 1, leverage: the first of the 20 layers is dense.
MINI = moe(
    (20, 2048, 16, 4, 4096, 126_464), 384, 12, 384, shared=1, n_dense_layers=1, d_ffn=5120
)  # fmt: skip
DENSE = Model(
    n_layers=28, d_model=4096, n_heads=32, n_kv=8, context=4096, vocab_size=126_464,
    ffn=DenseFFN(kind="dense", d_ffn=14_336),
)  # fmt: skip


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("allocation_printed", 950_146_560.0),
        ("allocation", 1_082_856_960.0),
        ("leverage_printed", 1_031_208_960.0),
        ("leverage", 597_196_800.0),
        ("leverage_no_router", 597_196_800.0 - 3 * 10 * 2 * 640 * 64),
        ("sparsity", 1_119_682_560.0),
    ],
)
def test_one_config_in_every_convention(convention, expected):
    assert train_flops_per_token(G3, convention) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("convention", "attention", "ratio"),
    [
        ("allocation_printed", 8_028_160.0, 0.9287308673469388),
        ("allocation", 12_451_840.0, 0.5987870065789473),
    ],
)
def test_allocation_ratio(convention, attention, ratio):
    c_attention, c_experts = attention_and_ffn(G3, convention)
    assert c_attention / G3.n_layers == attention
    assert c_experts / G3.n_layers == 7_456_000
    assert c_experts / c_attention == pytest.approx(ratio, rel=1e-12)


def test_sparsity_eq9_and_its_proxy():
    # 12 layers of width 768, two active experts of width 4d, the paper's context and vocabulary.
    model = moe((12, 768, 12, 12, 2048, 50_432), 8, 2, 4 * 768)
    flops = train_flops_per_token(model, "sparsity")
    assert flops == pytest.approx(1_647_968_256, rel=1e-9)
    proxy = train_flops_per_token(model, "six_n") - 3 * forward_terms(model)["router"]
    assert flops / proxy == pytest.approx(1.1593360995850621, rel=1e-9)


def test_sparsity_eq9_as_the_paper_simplifies_it():
    """6 L d^2 (4 + 2 n / d + 12 E_act / G + V / (d L)), G = 4 d / d_ffn."""
    L, d, n, V = G3.n_layers, G3.d_model, G3.context, G3.vocab_size
    for kv in (2, 10):  # it knows no grouped queries
        model = G3.model_copy(update={"n_kv": kv})
        expected = 6 * L * d**2 * (4 + 2 * n / d + 12 * 3 / 4 + V / (d * L))
        assert train_flops_per_token(model, "sparsity") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "heads", "kv", "shapes", "mean", "spread"),
    [
        (8, 8, 2, [(352, 450), (368, 380), (384, 320), (400, 260), (416, 208)], 222777139.2,
         0.0022781559363220794),
        (22, 20, 4, [(1120, 1686), (1280, 1280), (1360, 1110), (1440, 956), (1520, 816)],
         3861348480.0, 0.0003939075630252642),
    ],
)  # fmt: skip
def test_leverage_table_12_holds_compute_constant(layers, heads, kv, shapes, mean, spread):
    flops = [
        train_flops_per_token(
            moe((layers, d, heads, kv, 4096, 126_464), 64, 2, width, shared=1), "leverage"
        )
        for d, width in shapes
    ]
    assert sum(flops) / len(flops) == pytest.approx(mean, rel=1e-6)
    assert max(flops) / min(flops) - 1 == pytest.approx(spread, rel=1e-6)


def test_leverage_table_12_spans_the_allocation_papers_ratios():
    """With its E = 65, the corrected r of allocation spans its range, r in [0.2, 1.5]."""
    ends = [(8, 416, 8, 2, 208), (22, 1120, 20, 4, 1686), (8, 352, 8, 2, 450)]
    ratios = []
    for layers, d, heads, kv, width in ends:
        model = moe((layers, d, heads, kv, 4096, 128_000), 64, 2, width, shared=1)
        c_attention, c_experts = attention_and_ffn(model, "allocation")
        ratios.append(c_experts / c_attention)
    assert min(ratios) == pytest.approx(0.210, abs=5e-4)
    assert max(ratios) == pytest.approx(1.401, abs=5e-4)


def test_moe_mini_and_its_dense_counterpart():
    mini, dense = (train_flops_per_token(model, "leverage") for model in (MINI, DENSE))
    assert mini == pytest.approx(7_046_430_720, rel=1e-9)
    assert dense == pytest.approx(42_278_584_320, rel=1e-9)
    assert dense / mini == pytest.approx(6.0, rel=1e-5)
    # By App I, which counts no router, MoE-mini costs 1.3 % less.
    mini, dense = (train_flops_per_token(model, "leverage_no_router") for model in (MINI, DENSE))
    assert dense == pytest.approx(42_278_584_320, rel=1e-9)
    assert mini == pytest.approx(7_046_430_720 - 19 * 6 * 2048 * 384, rel=1e-9)


def test_moe_mini_and_dense_6b():
    """Table 1, leverage, printed as 17.5B, 0.85B and 6.11B: neither embeddings nor norms, and of
    MoE-mini's 20 layers the first is dense."""
    counts = count_parameters(MINI)
    without = counts.embeddings + counts.norms + counts.router
    assert counts.total - without == 17_499_422_720
    assert counts.active - without == 823_918_592
    counts = count_parameters(DENSE)
    assert counts.total - counts.embeddings - counts.norms == 6_106_906_624


@pytest.mark.parametrize(
    ("kv", "total", "active"), [(2, 545_259_520, 24_117_248), (8, 548_405_248, 27_262_976)]
)
def test_allocation_figure_4_sizes(kv, total, active):
    """Labelled 30M active, 550M in total; the shapes are inferred from the leverage paper's."""
    counts = count_parameters(moe((8, 512, 8, kv, 4096, 128_000), 64, 2, 512, shared=1))
    without = counts.router + counts.norms
    assert counts.total - without == total
    assert counts.active - counts.embeddings - without == active


@pytest.mark.parametrize(
    ("layers", "width", "active"),
    [
        (2, 256, 3_148_800), (2, 384, 3_673_600), (2, 512, 4_198_400), (2, 768, 5_248_000),
        (2, 1024, 6_297_600), (4, 256, 6_297_600), (4, 384, 7_347_200), (4, 512, 8_396_800),
        (4, 768, 10_496_000), (4, 1024, 12_595_200), (4, 1536, 16_793_600), (6, 768, 15_744_000),
        (6, 1024, 18_892_800), (8, 1024, 25_190_400),
    ],
)  # fmt: skip
def test_generalization_table_3(layers, width, active):
    """N_act: multi-head attention and two of eight GELU experts with their biases."""
    counts = count_parameters(moe((layers, 512, 4, 4, 128, 50_257), 8, 2, width, mlp="gelu"))
    assert counts.active - counts.embeddings - counts.norms - counts.router == active


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
def test_six_n_is_six_flops_an_active_parameter_that_multiplies(mlp, tied):
    sizes, ffn = (3, 16, 4, 2, 4096, 126_464), {"mlp": mlp, "n_dense_layers": 1, "d_ffn": 20}
    model = moe(sizes, 6, 2, 10, shared=3, **ffn).model_copy(update={"tied_embeddings": tied})
    counts = count_parameters(model)
    multiplying = counts.active - counts.embeddings - counts.norms + 126_464 * 16
    if mlp == "gelu":  # biases: of a token's two experts and the shared MLP, and of the dense layer
        multiplying -= 2 * (2 * (10 + 16) + 30 + 16) + 20 + 16
    assert train_flops_per_token(model, "six_n") == 6 * multiplying


TEXT = Corpus(source=Text(digest="0" * 64), vocab_size=VOCABULARY)
WSD = {"kind": "wsd", "warmup_steps": 20, "decay": 0.1}
DECADE = [round(200 * 10 ** (i / 7)) for i in range(8)]


def runs_of(lengths, schedule=WSD, **changes):
    return [run_of(TEXT, steps=n, schedule=schedule, **changes) for n in lengths]


def test_eight_budgets_in_a_decade_cost_less_than_half():
    """All of the longest, and of each other one its decay: (10 + 0.1 * 23.1) / 33.1."""
    runs = runs_of(DECADE)
    steps = sum(run.steps for run in spent(runs)) / sum(DECADE)
    assert steps == pytest.approx(0.372, abs=0.002)
    whole, own = ([estimate(run, CPU) for run in some] for some in (runs, spent(runs)))
    assert sum(c.flops for c in own) / sum(c.flops for c in whole) == pytest.approx(steps)
    # Each run starts a process and is evaluated, whatever it shares.
    per_step = (whole[1].seconds - whole[0].seconds) / (DECADE[1] - DECADE[0])
    saved = sum(c.seconds for c in whole) - sum(c.seconds for c in own)
    assert saved == pytest.approx(per_step * (1 - steps) * sum(DECADE))


def test_each_step_of_a_trunk_is_trained_once():
    runs = runs_of(DECADE)
    branches = [run.branch_step for run in runs]
    assert shared_steps(reversed(runs)) == dict(
        zip((run.run_id for run in runs[1:]), branches, strict=False)
    )
    decays = sum(run.steps - run.branch_step for run in runs)
    assert sum(run.steps for run in spent(runs)) == branches[-1] + decays


def test_what_shares_no_trunk_is_spent_whole():
    for changes in ({"kind": "cosine", "warmup_steps": 20}, {"kind": "wsd", "warmup": 0.1}):
        assert not shared_steps(runs_of(DECADE, changes))
    other_seeds = [*runs_of(DECADE[:1]), *runs_of(DECADE[1:2], seed=1)]
    assert not shared_steps(other_seeds)
    runs = runs_of(DECADE[:3])
    assert shared_steps(runs, {runs[0].run_id: (), runs[1].run_id: (9,)}) == {
        runs[2].run_id: runs[0].branch_step
    }
