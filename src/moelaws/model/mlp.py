"""Feed-forward layers, dense or of experts side by side: their weights and their products.

Shapes: T tokens, D model width, F hidden width, E experts.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.casting import cast
from moelaws.model.fused import fused
from moelaws.model.initial import Shapes, add_weights
from moelaws.spec.parts import Mlp


def weight_shapes(mlp: Mlp, E: int, D: int, F: int) -> Shapes:
    """Returns name -> shape of E experts' weights, in the back ends' order; b are biases."""
    if mlp == "swiglu":
        return {"w_gate_up": (E, D, 2 * F), "w_down": (E, F, D)}
    return {"w_in": (E, D, F), "b_in": (E, F), "w_out": (E, F, D), "b_out": (E, D)}


def dense_shapes(mlp: Mlp, D: int, F: int) -> Shapes:
    """Returns name -> shape of a dense layer's weights: those of one expert, transposed."""
    return {name: shape[:0:-1] for name, shape in weight_shapes(mlp, 1, D, F).items()}


def feed_forward(x: Tensor, weights: Sequence[Tensor], product: Callable[..., Tensor]) -> Tensor:
    """Returns the output of an MLP with two weights or four; ``product`` takes x, W and maybe b.

    Two are W_down (silu(W_gate x) * W_up x) (Shazeer, 2020), four W_out gelu(W_in x + b_in) + b_out
    (generalization, Tables 3-4).
    """
    if len(weights) == 2:
        w_gate_up, w_down = weights
        return product(swiglu(product(x, w_gate_up)), w_down)
    w_in, b_in, w_out, b_out = weights
    return product(F.gelu(product(x, w_in, b_in)), w_out, b_out)


@fused(rows=1)
def swiglu(h: Tensor) -> Tensor:
    """Returns silu(gate) * up (..., F), where ``h`` (..., 2 F) has the gate first."""
    gate, up = h.chunk(2, dim=-1)
    return F.silu(gate) * up


class MLP(nn.Module):
    """A feed-forward layer with weights of the given ``shapes``, by its ``product``."""

    def __init__(
        self,
        shapes: Shapes,
        init_std: float,
        generator: torch.Generator,
        product: Callable[..., Tensor] = F.linear,
    ) -> None:
        super().__init__()
        self.product = product
        self.names = add_weights(self, shapes, init_std, generator)

    def forward(self, x: Tensor) -> Tensor:
        weights = [cast(getattr(self, name), x.dtype) for name in self.names]
        return feed_forward(x, weights, self.product)
