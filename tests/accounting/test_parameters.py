"""Published sizes of models. That they are those of built models, tests/model/ shows."""

import pytest

from moelaws.accounting.flops import train_flops_per_token
from moelaws.accounting.parameters import count_parameters
from moelaws.spec.model import DenseFFN, Model, MoE


def spec(sizes, ffn, context=4096, vocabulary=126_464):
    """A model of ``sizes``: layers, d_model, heads, key-value heads."""
    layers, d, heads, kv = sizes
    return Model(
        n_layers=layers, d_model=d, n_heads=heads, n_kv=kv, context=context,
        vocab_size=vocabulary, ffn=ffn,
    )  # fmt: skip


def test_moe_mini_and_dense_6b():
    """Table 1, leverage, printed as 17.5B, 0.85B and 6.11B: neither embeddings nor norms, and of
    MoE-mini's 20 layers the first is dense."""
    mini = MoE(
        kind="moe", n_experts=384, top_k=12, d_expert=384, n_shared=1, n_dense_layers=1, d_ffn=5120
    )
    counts = count_parameters(spec((20, 2048, 16, 4), mini))
    without = counts.embeddings + counts.norms + counts.router
    assert counts.total - without == 17_499_422_720
    assert counts.active - without == 823_918_592
    counts = count_parameters(spec((28, 4096, 32, 8), DenseFFN(kind="dense", d_ffn=14_336)))
    assert counts.total - counts.embeddings - counts.norms == 6_106_906_624


@pytest.mark.parametrize(
    ("kv", "total", "active"), [(2, 545_259_520, 24_117_248), (8, 548_405_248, 27_262_976)]
)
def test_allocation_figure_4_sizes(kv, total, active):
    """Labelled 30M active, 550M in total; the shapes are inferred from the leverage paper's."""
    ffn = MoE(kind="moe", n_experts=64, top_k=2, d_expert=512, n_shared=1)
    counts = count_parameters(spec((8, 512, 8, kv), ffn, vocabulary=128_000))
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
    ffn = MoE(kind="moe", n_experts=8, top_k=2, d_expert=width, mlp="gelu")
    counts = count_parameters(spec((layers, 512, 4, 4), ffn, context=128, vocabulary=50_257))
    assert counts.active - counts.embeddings - counts.norms - counts.router == active


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
def test_six_n_is_six_flops_an_active_parameter_that_multiplies(mlp, tied):
    ffn = MoE(
        kind="moe", n_experts=6, top_k=2, d_expert=10, n_shared=3, mlp=mlp, n_dense_layers=1,
        d_ffn=20,
    )  # fmt: skip
    model = spec((3, 16, 4, 2), ffn).model_copy(update={"tied_embeddings": tied})
    counts = count_parameters(model)
    multiplying = counts.active - counts.embeddings - counts.norms + 126_464 * 16
    if mlp == "gelu":  # biases: of a token's two experts and the shared MLP, and of the dense layer
        multiplying -= 2 * (2 * (10 + 16) + 30 + 16) + 20 + 16
    assert train_flops_per_token(model, "six_n") == 6 * multiplying
