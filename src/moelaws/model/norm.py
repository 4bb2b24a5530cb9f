"""RMSNorm (Zhang & Sennrich, 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

EPSILON = 1e-6


class RMSNorm(nn.Module):
    """y = gain * x / sqrt(mean(x^2) + 1e-6) over the last axis; gain (*shape,) starts at 1.

    The shape is the width, or one that broadcasts against x. Computed and returned in fp32,
    whatever the type of x: the caller rounds once, where it must.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(shape))

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.gain
