"""Inputs of the routed experts' back ends, and what a back end makes of them."""

import torch
import torch.nn.functional as F

from moelaws.model.backends import BACKENDS
from moelaws.model.mlp import weight_shapes

ROUTINGS = ("random", "all on one", "half are empty")


def draw(T, shape, routing, mlp="swiglu", device="cpu"):
    """x, chosen experts, gates in fp32 and the weights, for ``shape`` D, E, K, width."""
    D, E, K, width = shape
    g = torch.Generator().manual_seed(0)
    if routing == "all on one":
        experts_TK = torch.arange(E - K, E).expand(T, K).clone()
    else:
        among = E if routing == "random" else max(K, E // 2)
        experts_TK = torch.rand(T, among, generator=g).topk(K).indices
    drawn = (
        torch.randn(T, D, generator=g),
        experts_TK,
        torch.rand(T, K, generator=g),
        *(
            torch.randn(shape, generator=g) / shape[-2] ** 0.5
            for shape in weight_shapes(mlp, E, D, width).values()
        ),
    )
    return tuple(tensor.to(device) for tensor in drawn)


def expert(x_D, weights):
    """One expert's output for one token; its weights are those of ``mlp.weight_shapes``."""
    if len(weights) == 2:
        gate, up = (x_D @ weights[0]).chunk(2)
        return (F.silu(gate) * up) @ weights[1]
    w_in, b_in, w_out, b_out = weights
    return F.gelu(x_D @ w_in + b_in) @ w_out + b_out


def by_loop(x_TD, experts_TK, gates_TK, *weights):
    """y_t = sum_k gate_tk * expert_{e_tk}(x_t), one token and one expert after another."""
    rows = [
        sum(
            gate * expert(x_D, [w[e] for w in weights])
            for e, gate in zip(chosen, gates_K, strict=True)
        )
        for x_D, chosen, gates_K in zip(x_TD, experts_TK.tolist(), gates_TK, strict=True)
    ]
    return torch.stack(rows)


def value_and_gradients(name, inputs, dtype=torch.float32, mlp="swiglu"):
    """Output and the gradients by x, gates and weights; gates are in fp32 or better.

    ``name`` is that of a back end, or ``loop``.
    """
    x, experts, gates, *weights = inputs
    leaves = [t.to(dtype) for t in (x, *weights)]
    leaves.insert(1, gates.to(torch.promote_types(dtype, torch.float32)))
    leaves = [t.detach().requires_grad_() for t in leaves]
    function = by_loop if name == "loop" else BACKENDS[name].functions[mlp]
    y = function(leaves[0], experts, *leaves[1:])
    weight = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=y.device).view(y.shape)
    return [y, *torch.autograd.grad((y * weight).sum(), leaves)]
