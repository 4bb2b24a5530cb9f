"""Inputs of the routed experts' back ends, and what a back end makes of them."""

import torch

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


def value_and_gradients(name, inputs, dtype=torch.float32, mlp="swiglu"):
    """Output and the gradients by x, gates and weights; gates are in fp32 or better."""
    x, experts, gates, *weights = inputs
    leaves = [t.to(dtype) for t in (x, *weights)]
    leaves.insert(1, gates.to(torch.promote_types(dtype, torch.float32)))
    leaves = [t.detach().requires_grad_() for t in leaves]
    y = BACKENDS[name].functions[mlp](leaves[0], experts, *leaves[1:])
    weight = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=y.device).view(y.shape)
    return [y, *torch.autograd.grad((y * weight).sum(), leaves)]
