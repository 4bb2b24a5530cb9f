"""Published and re-derived numbers of the papers' FLOPs conventions."""

import pytest

from moelaws.accounting.flops import attention_and_ffn, forward_terms, train_flops_per_token
from moelaws.spec.model import DenseFFN, Model, MoE


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
