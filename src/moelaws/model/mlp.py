"""The dense feed-forward layers: SwiGLU, and the GELU MLP with biases.

Shapes: T tokens, D model width, F hidden width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.casting import cast
from moelaws.spec.model import Mlp


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) * W_up x) (Shazeer, 2020): 3 D F parameters, no biases."""

    def __init__(
        self, d_model: int, width: int, init_std: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.w_gate_up = nn.Parameter(torch.empty(2 * width, d_model))
        self.w_down = nn.Parameter(torch.empty(d_model, width))
        for weight in (self.w_gate_up, self.w_down):
            nn.init.normal_(weight, std=init_std, generator=generator)

    def forward(self, x_TD: Tensor) -> Tensor:
        gate, up = F.linear(x_TD, cast(self.w_gate_up, x_TD.dtype)).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, cast(self.w_down, x_TD.dtype))


class GeluMLP(nn.Module):
    """W_out gelu(W_in x + b_in) + b_out: 2 D F + F + D parameters (generalization, Tables 3-4)."""

    def __init__(
        self, d_model: int, width: int, init_std: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.w_in = nn.Parameter(torch.empty(width, d_model))
        self.b_in = nn.Parameter(torch.zeros(width))
        self.w_out = nn.Parameter(torch.empty(d_model, width))
        self.b_out = nn.Parameter(torch.zeros(d_model))
        for weight in (self.w_in, self.w_out):
            nn.init.normal_(weight, std=init_std, generator=generator)

    def forward(self, x_TD: Tensor) -> Tensor:
        h_TF = F.linear(x_TD, cast(self.w_in, x_TD.dtype), cast(self.b_in, x_TD.dtype))
        return F.linear(F.gelu(h_TF), cast(self.w_out, x_TD.dtype), cast(self.b_out, x_TD.dtype))


MLPS: dict[Mlp, type[SwiGLU] | type[GeluMLP]] = {"swiglu": SwiGLU, "gelu": GeluMLP}
