"""Small cases: the interpreter takes some milliseconds for each row that a kernel copies."""

import pytest
import torch

from moelaws.model.backends import BACKENDS
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


def draw(T, D, E, K, width, routing):
    """x, chosen experts, gates, and the weights of E experts."""
    g = torch.Generator().manual_seed(0)
    if routing == "all on the same":
        experts_TK = torch.arange(E - K, E).expand(T, K).clone()
    else:
        among = E if routing == "random" else max(K, E // 2)
        experts_TK = torch.rand(T, among, generator=g).topk(K).indices
    drawn = (
        torch.randn(T, D, generator=g),
        experts_TK,
        torch.rand(T, K, generator=g),
        torch.randn(E, D, 2 * width, generator=g) / D**0.5,
        torch.randn(E, width, D, generator=g) / width**0.5,
    )
    return tuple(tensor.to(DEVICE) for tensor in drawn)


def value_and_gradients(name, inputs, dtype=torch.float32):
    """Output and the gradients by x, gates and both weights; gates are in fp32 or better."""
    x, experts, gates, *weights = inputs
    gates_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    leaves = [t.to(dtype) for t in (x, *weights)] + [gates.to(gates_dtype)]
    leaves = [t.detach().requires_grad_() for t in leaves]
    function = BACKENDS[name].functions["swiglu"]
    y = function(leaves[0], experts, leaves[3], leaves[1], leaves[2])
    weight = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=DEVICE).view(y.shape)
    return [y, *torch.autograd.grad((y * weight).sum(), leaves)]
