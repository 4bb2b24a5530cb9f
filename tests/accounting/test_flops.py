"""Published and re-derived numbers of the papers' FLOPs and parameter conventions."""

import pytest

from moelaws.accounting.flops import allocation_parts, matmul_parameters, train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.model import DenseFFN, Model, MoE


def moe(layers, d, heads, kv, context, vocabulary, experts, k, width, shared=0):
    ffn = MoE(kind="moe", n_experts=experts, top_k=k, d_expert=width, n_shared=shared)
    return Model(
        n_layers=layers, d_model=d, n_heads=heads, n_kv=kv, context=context,
        vocab_size=vocabulary, ffn=ffn,
    )  # fmt: skip


# The leverage paper's third base model, with the 64 routed experts of its Table 12.
G3 = moe(10, 640, 10, 2, 4096, 126_464, 64, 2, 640, shared=1)


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
    ("printed", "attention", "ratio"),
    [(True, 8_028_160.0, 0.9287308673469388), (False, 12_451_840.0, 0.5987870065789473)],
)
def test_allocation_ratio(printed, attention, ratio):
    c_attention, c_experts = allocation_parts(G3, printed)
    assert c_attention == attention
    assert c_experts == 7_456_000
    assert c_experts / c_attention == pytest.approx(ratio, rel=1e-12)


def test_sparsity_eq9_and_its_proxy():
    # 12 layers of width 768, two active experts of width 4d, the paper's context and vocabulary.
    model = moe(12, 768, 12, 12, 2048, 50_432, 8, 2, 4 * 768)
    flops = train_flops_per_token(model, "sparsity")
    assert flops == pytest.approx(1_647_968_256, rel=1e-9)
    no_router = matmul_parameters(model) - count_parameters(model).router
    assert flops / (6 * no_router) == pytest.approx(1.1593360995850621, rel=1e-9)


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
            moe(layers, d, heads, kv, 4096, 126_464, 64, 2, width, shared=1), "leverage"
        )
        for d, width in shapes
    ]
    assert sum(flops) / len(flops) == pytest.approx(mean, rel=1e-3)
    assert max(flops) / min(flops) - 1 == pytest.approx(spread, rel=1e-3)


def test_leverage_dense_counterpart():
    dense = Model(
        n_layers=28, d_model=4096, n_heads=32, n_kv=8, context=4096, vocab_size=126_464,
        ffn=DenseFFN(kind="dense", d_ffn=14_336),
    )  # fmt: skip
    assert train_flops_per_token(dense, "leverage") == pytest.approx(42_278_584_320, rel=1e-5)
    counts = count_parameters(dense)
    assert counts.total - counts.embeddings - counts.norms == 6_106_906_624


@pytest.mark.parametrize(
    ("kv", "total", "active"), [(2, 545_259_520, 24_117_248), (8, 548_405_248, 27_262_976)]
)
def test_allocation_figure_4_sizes(kv, total, active):
    model = moe(8, 512, 8, kv, 4096, 128_000, 64, 2, 512, shared=1)
    counts = count_parameters(model)
    without = counts.router + counts.norms
    assert counts.total - without == total
    assert counts.active - counts.embeddings - without == active
