"""Causal grouped-query attention with rotary positions and optional QK-norm; RMSNorm.

Shapes: B sequences, N positions, D model width, H query heads, G key-value heads, W head width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.casting import cast
from moelaws.model.fused import fused, mapped
from moelaws.model.initial import random_weight
from moelaws.model.parameterization import multipliers
from moelaws.spec.model import Model

EPSILON = 1e-6


class RMSNorm(nn.Module):
    """y = gain * x / sqrt(mean(x^2) + 1e-6) over the last axis (Zhang & Sennrich, 2019).

    The gain (*shape,) starts at 1. Its shape is the width, or one that broadcasts against x. y is
    computed in fp32, whatever the type of x.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(shape))
        self.scale = 1.0  # of y, in fp32

    def forward(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns y in ``dtype``, rounded once."""
        return normed(x, self.gain if self.scale == 1 else self.gain * self.scale, dtype)


@fused(rows=1)
def normed(x: Tensor, gain: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns x / rms(x) times ``gain``, computed in fp32 and rounded to ``dtype``."""
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain).to(dtype)


@fused(rows=2)
def added_and_normed(
    x: Tensor, y: Tensor, gain: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Returns the residual stream ``x`` + ``y`` in fp32, and its norm in ``dtype``."""
    x = x + y
    return x, (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain).to(dtype)


class Attention(nn.Module):
    """Multi-head attention for n_kv = n_heads, else grouped-query (Ainslie et al., 2023).

    It has no biases. One matrix projects to queries, keys and values: d (H + 2 n_kv) W entries.
    """

    def __init__(self, model: Model, generator: torch.Generator) -> None:
        super().__init__()
        self.n_heads, self.n_kv = model.n_heads, model.n_kv
        self.width = model.width_of_head
        out = (model.n_heads + 2 * model.n_kv) * self.width
        self.w_qkv = random_weight(model.init_std, generator, out, model.d_model)
        self.w_out = random_weight(model.init_std, generator, model.d_model, model.d_attention)
        self.q_norm = RMSNorm(self.width) if model.qk_norm else None
        self.k_norm = RMSNorm(self.width) if model.qk_norm else None
        self.scores = multipliers(model).scores

    def forward(self, x_BND: Tensor, rotation: Tensor) -> Tensor:
        """Returns (B, N, D) in the type of ``x_BND``; ``rotation`` comes from ``rotary``."""
        B, N, _ = x_BND.shape
        qkv_BNX = F.linear(x_BND, cast(self.w_qkv, x_BND.dtype))
        qkv_BNXW = qkv_BNX.view(B, N, -1, self.width)
        norms = self.q_norm, self.k_norm
        y_BNV = attend(qkv_BNXW, self.n_heads, norms, rotation, self.scores)
        return F.linear(y_BNV, cast(self.w_out, x_BND.dtype))


Norms = tuple[RMSNorm | None, RMSNorm | None]


def attend(
    qkv_NXW: Tensor, n_heads: int, norms: Norms, rotation: Tensor, scores: float = 1.0
) -> Tensor:
    """Returns causal attention (..., N, H W) of queries, keys and values (..., N, H + 2 G, W).

    ``norms`` are those of queries and of keys: two modules, or None twice. ``scores`` multiplies
    the scores, which are divided by W^1/2.
    """
    H, G = n_heads, (qkv_NXW.shape[-2] - n_heads) // 2
    # Split, not sliced: the backward pass of a slice fills a whole tensor with zeros.
    qk, v_NGW = torch.split_with_sizes(qkv_NXW, [H + G, G], -2)
    q_norm, k_norm = norms
    if q_norm is not None and k_norm is not None:
        q, k = torch.split_with_sizes(qk, [H, G], -2)
        qk = torch.cat((q_norm(q), k_norm(k)), dim=-2)
    turned = (rotate_on_gpu if qk.is_cuda else rotate)(qk, rotation).to(qkv_NXW.dtype)
    q_NHW, k_NGW = torch.split_with_sizes(turned, [H, G], -2)
    # Fused kernels take four axes, so the sequences of several experts become one batch.
    q_BHNW, k_BGNW, v_BGNW = (t.transpose(-3, -2).flatten(0, -4) for t in (q_NHW, k_NGW, v_NGW))
    scale = None if scores == 1 else scores * qkv_NXW.shape[-1] ** -0.5
    y_BHNW = F.scaled_dot_product_attention(
        q_BHNW, k_BGNW, v_BGNW, is_causal=True, enable_gqa=G != H, scale=scale
    )
    return y_BHNW.transpose(1, 2).reshape(*qkv_NXW.shape[:-2], -1)


def rotary(context: int, width: int, theta: float) -> Tensor:
    """Returns e^{i n theta^{-2j/W}}, complex (N, 1, W / 2) (Su et al., 2021, Eq 15)."""
    frequency = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(context, dtype=torch.float64)[:, None] * frequency
    return torch.polar(torch.ones_like(angle), angle).to(torch.complex64)[:, None, :]


def rotate(x_NHW: Tensor, rotation: Tensor) -> Tensor:
    """Turns each neighbouring pair of (..., N, H, W) by its position's angle, in fp32."""
    pairs = torch.view_as_complex(x_NHW.float().view(*x_NHW.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation[: x_NHW.shape[-3]]).flatten(-2)


def rotate_on_gpu(x_NHW: Tensor, rotation: Tensor) -> Tensor:
    """Returns ``rotate`` in the type of ``x_NHW``, without complex numbers, which are not fused."""
    rotation_N1W2 = torch.view_as_real(rotation[: x_NHW.shape[-3]])
    return mapped(
        x_NHW,
        lambda x_NHW: rotated(x_NHW, rotation_N1W2, 1.0),
        lambda gradient_NHW: rotated(gradient_NHW, rotation_N1W2, -1.0),  # turned back
    )


@fused(rows=1)
def rotated(x_NHW: Tensor, rotation_N1W2: Tensor, sign: float) -> Tensor:
    """Turns each pair by its angle times ``sign``: a c - b s and b c + a s, both by one formula."""
    pairs = x_NHW.float().view(*x_NHW.shape[:-1], -1, 2)
    cos, sin = rotation_N1W2[..., :1], rotation_N1W2[..., 1:] * sign
    is_first = torch.arange(2, device=x_NHW.device) == 0
    turned: Tensor = pairs * cos + pairs.flip(-1) * torch.where(is_first, -sin, sin)
    return turned.flatten(-2).to(x_NHW.dtype)
