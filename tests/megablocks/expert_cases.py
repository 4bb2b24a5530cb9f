"""Small cases: the interpreter takes some milliseconds for each row that a kernel copies."""

import torch

from moelaws.model.backends import BACKENDS, Backend
from moelaws.model.megablocks.backend import megablocks_experts, megablocks_obstacle
from moelaws.spec.model import Model, MoE

MEGABLOCKS = Backend(
    "megablocks", {"swiglu": megablocks_experts}, "MegaBlocks' layer", megablocks_obstacle
)
FUNCTIONS = {
    "megablocks": megablocks_experts,
    **{name: BACKENDS[name].functions["swiglu"] for name in ("torch", "reference")},
}


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
    return (
        torch.randn(T, D, generator=g),
        experts_TK,
        torch.rand(T, K, generator=g),
        torch.randn(E, D, 2 * width, generator=g) / D**0.5,
        torch.randn(E, width, D, generator=g) / width**0.5,
    )


def value_and_gradients(name, inputs, dtype=torch.float32):
    """Output and the gradients by x, gates and both weights; gates are in fp32 or better."""
    x, experts, gates, *weights = inputs
    gates_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    leaves = [t.to(dtype) for t in (x, *weights)] + [gates.to(gates_dtype)]
    leaves = [t.detach().requires_grad_() for t in leaves]
    y = FUNCTIONS[name](leaves[0], experts, leaves[3], leaves[1], leaves[2])
    weight = torch.linspace(-1, 1, y.numel(), dtype=dtype).view(y.shape)
    return [y, *torch.autograd.grad((y * weight).sum(), leaves)]
