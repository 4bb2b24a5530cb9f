"""Causal grouped-query attention with rotary positions and optional QK-norm; RMSNorm.

Shapes: B sequences, N positions, D model width, H query heads, G key-value heads, W head width.
"""

from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from moelaws.model.casting import cast
from moelaws.model.fused import fused, mapped
from moelaws.spec.model import Model

EPSILON = 1e-6
# The widest heads, and the most scores, that a CPU computes at once: torch's own kernel is slow for
# heads of few columns, and more scores than these do not fit into a core's cache.
NARROW, SCORES = 32, 1 << 19


class RMSNorm(nn.Module):
    """y = gain * x / sqrt(mean(x^2) + 1e-6) over the last axis (Zhang & Sennrich, 2019).

    The gain (*shape,) starts at 1. Its shape is the width, or one that broadcasts against x. y is
    computed in fp32, whatever the type of x.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(shape))

    def forward(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns y in ``dtype``, rounded once."""
        return normed(x, self.gain, dtype)


class _Normed(torch.autograd.Function):
    """In few operations for the CPU: to start one takes as long as a small model's numbers."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, axis: int = -1) -> Tensor:
        scale = x.square().mean(axis, keepdim=True).add_(EPSILON).rsqrt_()
        normal = x * scale
        ctx.axis = axis
        ctx.save_for_backward(normal, scale, gain)
        return normal * gain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        normal, scale, gain = ctx.saved_tensors
        product = dy * normal
        along = (product * gain).mean(ctx.axis, keepdim=True)
        dx = torch.addcmul(dy * gain, normal, along, value=-1).mul_(scale)
        return dx, product.sum_to_size(gain.shape), None


def _normed(x: Tensor, gain: Tensor, dtype: torch.dtype) -> Tensor:
    y: Tensor = _Normed.apply(x.float(), gain)  # type: ignore[no-untyped-call]
    return y.to(dtype)


@fused(rows=1, elsewhere=_normed)
def normed(x: Tensor, gain: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns x / rms(x) times ``gain``, computed in fp32 and rounded to ``dtype``."""
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain).to(dtype)


@fused(rows=2, elsewhere=lambda x, y, *more: (x := x + y, _normed(x, *more)))
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
        self.w_qkv = nn.Parameter(torch.empty(out, model.d_model))
        self.w_out = nn.Parameter(torch.empty(model.d_model, model.d_attention))
        for weight in (self.w_qkv, self.w_out):
            nn.init.normal_(weight, std=model.init_std, generator=generator)
        self.q_norm = RMSNorm(self.width) if model.qk_norm else None
        self.k_norm = RMSNorm(self.width) if model.qk_norm else None

    def forward(self, x_BND: Tensor, rotation: Tensor) -> Tensor:
        """Returns (B, N, D) in the type of ``x_BND``; ``rotation`` comes from ``rotary``."""
        B, N, _ = x_BND.shape
        qkv_BNX = F.linear(x_BND, cast(self.w_qkv, x_BND.dtype))
        y_BNV = attend(
            qkv_BNX.view(B, N, -1, self.width), self.n_heads, (self.q_norm, self.k_norm), rotation
        )
        return F.linear(y_BNV, cast(self.w_out, x_BND.dtype))


Norms = tuple[RMSNorm | None, RMSNorm | None]


def attend(qkv_NXW: Tensor, n_heads: int, norms: Norms, rotation: Tensor) -> Tensor:
    """Returns causal attention (..., N, H W) of queries, keys and values (..., N, H + 2 G, W).

    ``norms`` are those of queries and of keys: two modules, or None twice.
    """
    H, G = n_heads, (qkv_NXW.shape[-2] - n_heads) // 2
    if is_small(qkv_NXW, H):
        return attend_small(qkv_NXW, norms, rotation)
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
    y_BHNW = F.scaled_dot_product_attention(
        q_BHNW, k_BGNW, v_BGNW, is_causal=True, enable_gqa=G != H
    )
    return y_BHNW.transpose(1, 2).reshape(*qkv_NXW.shape[:-2], -1)


def is_small(qkv: Tensor, n_heads: int) -> bool:
    """Tells whether ``attend_small`` takes it: (B, N, 3 H, W) in fp32 on a CPU."""
    shaped = qkv.dim() == 4 and qkv.shape[2] == 3 * n_heads and qkv.shape[3] <= NARROW
    small = shaped and len(qkv) * n_heads * qkv.shape[1] ** 2 <= SCORES
    return small and qkv.device.type == "cpu" and qkv.dtype == torch.float32


def attend_small(qkv_BNXW: Tensor, norms: Norms, rotation: Tensor) -> Tensor:
    """Returns ``attend`` for small heads, whose products are fast with the positions last.

    M = H B heads of all sequences, and 2 stands for queries and keys.
    """
    B, N, _, W = qkv_BNXW.shape
    qkv_3MWN = qkv_BNXW.permute(2, 0, 3, 1).reshape(3, -1, W, N)
    x_2MWN, v_1MWN = torch.split_with_sizes(qkv_3MWN, [2, 1])
    gains: list[Tensor] = [norm.gain for norm in norms if norm is not None]
    if gains:
        gain = torch.stack(gains)[:, None, :, None]
        x_2MWN = _Normed.apply(x_2MWN, gain, -2)  # type: ignore[no-untyped-call]
    same, other = (table[..., :N] for table in tables(rotation))

    def turned(x_2MWN: Tensor, sign: float = 1.0) -> Tensor:
        pairs = x_2MWN.view(2, -1, *same.shape)
        return torch.addcmul(pairs * same, pairs.flip(-2), other, value=sign).view_as(x_2MWN)

    x_2MWN = mapped(x_2MWN, turned, partial(turned, sign=-1.0))
    y_MWN: Tensor = _SmallAttention.apply(x_2MWN, v_1MWN[0])  # type: ignore[no-untyped-call]
    return y_MWN.view(-1, B, W, N).permute(1, 3, 0, 2).reshape(B, N, -1)


@cache
def tables(rotation: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what multiplies the numbers of each pair, and their neighbours: (W / 2, 2, N)."""
    cos, sin = rotation.real.permute(2, 1, 0), rotation.imag.permute(2, 1, 0)
    return torch.cat((cos, cos), 1), torch.cat((-sin, sin), 1)


@cache
def masked(N: int) -> Tensor:
    """Returns what is added to scores (N, N): minus infinity for keys that come after the query."""
    return torch.full((N, N), -torch.inf).triu(1)


class _SmallAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qk_2MWN: Tensor, v_MWN: Tensor) -> Tensor:
        q_MWN, k_MWN = qk_2MWN
        _, W, N = v_MWN.shape
        p_MNN = torch.baddbmm(masked(N), q_MWN.mT, k_MWN, alpha=W**-0.5).softmax(-1)
        ctx.save_for_backward(qk_2MWN, v_MWN, p_MNN)
        return torch.bmm(v_MWN, p_MNN.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_MWN: Tensor) -> tuple[Tensor, Tensor]:
        (q_MWN, k_MWN), v_MWN, p_MNN = ctx.saved_tensors
        dp_MNN = torch.bmm(dy_MWN.mT, v_MWN)
        ds_MNN = torch._softmax_backward_data(dp_MNN, p_MNN, -1, torch.float32)
        dqk_2MWN = torch.empty(2, *v_MWN.shape)
        torch.bmm(k_MWN, ds_MNN.mT, out=dqk_2MWN[0])
        torch.bmm(q_MWN, ds_MNN, out=dqk_2MWN[1])
        return dqk_2MWN.mul_(v_MWN.shape[1] ** -0.5), torch.bmm(dy_MWN, p_MNN)


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

    def turned(x_NHW: Tensor) -> Tensor:
        return rotated(x_NHW, rotation_N1W2, 1.0)

    def turned_back(x_NHW: Tensor) -> Tensor:
        return rotated(x_NHW, rotation_N1W2, -1.0)

    return mapped(x_NHW, turned, turned_back)


@fused(rows=1)
def rotated(x_NHW: Tensor, rotation_N1W2: Tensor, sign: float) -> Tensor:
    """Turns each pair by its angle times ``sign``: a c - b s and b c + a s, both by one formula."""
    pairs = x_NHW.float().view(*x_NHW.shape[:-1], -1, 2)
    cos, sin = rotation_N1W2[..., :1], rotation_N1W2[..., 1:] * sign
    is_first = torch.arange(2, device=x_NHW.device) == 0
    turned: Tensor = pairs * cos + pairs.flip(-1) * torch.where(is_first, -sin, sin)
    return turned.flatten(-2).to(x_NHW.dtype)
