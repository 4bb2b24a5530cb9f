"""Causal grouped-query attention with rotary positions and optional QK-norm.

Shapes: B sequences, N positions, D model width, H query heads, G key-value heads, W head width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.casting import cast
from moelaws.model.norm import RMSNorm
from moelaws.spec.model import Model


class Attention(nn.Module):
    """Multi-head attention for n_kv = n_heads, else grouped-query (Ainslie et al., 2023).

    No biases. One matrix holds the query, key and value projections: d (H + 2 n_kv) W entries.
    """

    def __init__(self, model: Model, generator: torch.Generator) -> None:
        super().__init__()
        self.n_heads, self.n_kv = model.n_heads, model.n_kv
        self.width = model.width_of_head
        out = (model.n_heads + 2 * model.n_kv) * self.width
        self.w_qkv = nn.Parameter(torch.empty(out, model.d_model))
        self.w_out = nn.Parameter(torch.empty(model.d_model, model.d_attention))
        for weight in (self.w_qkv, self.w_out):
            nn.init.normal_(weight, std=model.init_std, generator=generator)
        self.q_norm = RMSNorm(self.width) if model.qk_norm else None
        self.k_norm = RMSNorm(self.width) if model.qk_norm else None

    def forward(self, x_BND: Tensor, rotation: Tensor) -> Tensor:
        """Returns (B, N, D) in the type of ``x_BND``; ``rotation`` is from ``rotary``."""
        B, N, _ = x_BND.shape
        H, G, W = self.n_heads, self.n_kv, self.width
        qkv = F.linear(x_BND, cast(self.w_qkv, x_BND.dtype)).view(B, N, H + 2 * G, W)
        # Splits, not slices: the backward of a slice fills a whole tensor with zeros.
        qk, v_BNGW = torch.split_with_sizes(qkv, [H + G, G], 2)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = torch.split_with_sizes(qk, [H, G], 2)
            qk = torch.cat((self.q_norm(q), self.k_norm(k)), dim=2)
        turned = rotate(qk, rotation).to(x_BND.dtype)
        q_BNHW, k_BNGW = torch.split_with_sizes(turned, [H, G], 2)
        y_BHNW = F.scaled_dot_product_attention(
            q_BNHW.transpose(1, 2),
            k_BNGW.transpose(1, 2),
            v_BNGW.transpose(1, 2),
            is_causal=True,
            enable_gqa=G != H,
        )
        return F.linear(y_BHNW.transpose(1, 2).reshape(B, N, H * W), cast(self.w_out, x_BND.dtype))


def rotary(context: int, width: int, theta: float) -> Tensor:
    """Returns e^{i n theta^{-2j/W}}, complex (N, 1, W / 2) (Su et al., 2021, Eq 15)."""
    frequency = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(context, dtype=torch.float64)[:, None] * frequency
    return torch.polar(torch.ones_like(angle), angle).to(torch.complex64)[:, None, :]


def rotate(x_BNHW: Tensor, rotation: Tensor) -> Tensor:
    """Turns each neighbouring pair of ``x_BNHW`` by its position's angle, in fp32."""
    pairs = torch.view_as_complex(x_BNHW.float().view(*x_BNHW.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[: x_BNHW.shape[1]]).flatten(-2)
