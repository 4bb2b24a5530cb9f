"""Small cases: the interpreter takes some milliseconds for each row that a kernel copies."""

import pytest
import torch

from moelaws.model.megablocks.backend import interpreted
from moelaws.spec.model import Model, MoE

DEVICE = "cuda" if torch.cuda.is_available() and not interpreted() else "cpu"
FP32 = pytest.mark.usefixtures("megablocks_fp32")
BF16 = pytest.mark.usefixtures("megablocks_bf16")


def moe_of(n_experts=8, top_k=2, d_expert=12, **changes):
    return MoE(
        kind="moe", n_experts=n_experts, top_k=top_k, d_expert=d_expert,
        **{"normalize_top_k": top_k > 1, **changes},
    )  # fmt: skip


def model_of(ffn=None, **changes):
    sizes = {"n_layers": 2, "d_model": 16, "n_heads": 2, "n_kv": 1, "context": 6}
    return Model(ffn=ffn or moe_of(), vocab_size=260, init_std=0.2, **{**sizes, **changes})
