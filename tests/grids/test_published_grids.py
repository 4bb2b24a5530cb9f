"""The papers' architectures as grids: which of them expand, and to what."""

import pytest
from grid_runs import TABLE_12, runs_of

from moelaws.accounting.parameters import count_parameters
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, MoE

SETTINGS = {
    "context": 4096, "vocab_size": 126_464, "n_experts": 64, "top_k": 2, "n_shared": 1,
    "precision": "bf16", "init_std": 0.006, "balance_group": 1,
}  # fmt: skip
BY = ["n_layers", "n_heads"]
DERIVE = {
    "lr": {"rule": "table", "by": BY, "rows": [
        [8, 8, 1.52e-3], [10, 10, 1.11e-3], [14, 12, 9.5e-4], [16, 16, 8.1e-4], [22, 20, 7e-4]]},
    "batch": {"rule": "table", "by": BY, "rows": [
        [8, 8, 96], [10, 10, 224], [14, 12, 320], [16, 16, 512], [22, 20, 768]]},
    "steps": {"rule": "compute", "convention": "leverage", "min_steps": 1000},
}  # fmt: skip


def configs_of(sweeps, derive=DERIVE, **settings):
    grid = {"settings": {**SETTINGS, **settings}, "derive": derive, "sweeps": sweeps}
    return [run.config for run in runs_of(grid)]


def test_every_row_of_leverage_table_12_expands():
    sweeps = [
        {
            "axes": {"n_layers": layers, "n_heads": heads, "n_kv": kv, "C": C},
            "zip": [{"d_model": [d for d, _ in shapes], "d_expert": [w for _, w in shapes]}],
        }
        for layers, heads, kv, C, shapes in TABLE_12
    ]
    configs = configs_of(sweeps)
    assert len({config.run_id for config in configs}) == 30
    assert {c.model.d_model for c in configs} >= {352, 700, 740, 1520}
    assert {c.optimizer.lr for c in configs if c.model.n_layers == 14} == {9.5e-4}
    assert {c.batch for c in configs if c.model.n_layers == 22} == {768}


def test_leverage_table_11_takes_experts_out_of_the_first_layers():
    """60 blocks, none to three of them dense; the dense width counts where there are any."""
    axes = {"n_layers": 60, "d_model": 384, "n_heads": 8, "n_kv": 2, "n_dense_layers": [0, 1, 2, 3]}
    derive = {"lr": {"rule": "leverage"}, "batch": {"rule": "leverage"}, "steps": DERIVE["steps"]}
    configs = configs_of([{"axes": axes}], derive, C=2e18, d_ffn=1280, d_expert=384)
    assert [c.model.n_moe_layers for c in configs] == [60, 59, 58, 57]
    counts = [count_parameters(c.model) for c in configs]
    assert [c.dense_ffn for c in counts] == [n * 3 * 384 * 1280 for n in range(4)]
    assert len({c.total + n * 3 * 384 * (65 * 384 - 1280) + n * 384 * 64
                for n, c in enumerate(counts)}) == 1  # fmt: skip


def test_what_a_point_says_of_its_layers_reaches_the_model():
    axes = {"n_layers": 2, "d_model": 32, "n_heads": 2, "mlp": "gelu", "lr": 1e-3}
    extra = {"batch": 2, "steps": 9, "d_ffn": 48}
    (routed,) = configs_of([{"axes": {**axes, "jitter": 0.01, "n_dense_layers": 1}}], {},
                        d_expert=8, **extra)  # fmt: skip
    assert routed.model.ffn == MoE(
        kind="moe", n_experts=64, top_k=2, d_expert=8, n_shared=1, mlp="gelu", jitter=0.01,
        n_dense_layers=1, d_ffn=48,
    )  # fmt: skip
    (dense,) = configs_of([{"axes": {**axes, "ffn": "dense"}}], {}, **extra)
    assert dense.model.ffn == DenseFFN(kind="dense", d_ffn=48, mlp="gelu")


def of_heads(width, kv, heads, **more):
    axes = {"n_layers": 2, "d_model": width, "n_kv": kv, "n_heads": heads, "lr": 1e-3, **more}
    return configs_of([{"axes": axes}], {}, batch=2, steps=9, d_expert=width)


@pytest.mark.parametrize(
    ("width", "kv", "heads", "message", "instead"),
    [
        (512, 2, 12, "head_width sets it apart", {"head_width": 42}),
        (1024, 4, 24, "head_width sets it apart", {"head_width": 42}),
        (768, 4, 6, "n_kv = 4 must divide n_heads = 6", {"n_kv": 3}),
    ],
)
def test_three_printed_head_counts_divide_nothing(width, kv, heads, message, instead):
    """Table 14, leverage, prints them, without the width or the groups that it gave them."""
    with pytest.raises(UserError, match=message):
        of_heads(width, kv, heads)
    (config,) = of_heads(width, kv, heads, **instead)
    assert config.model.n_heads == heads
