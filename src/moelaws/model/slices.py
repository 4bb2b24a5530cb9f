"""A block that is split over the embedding: E experts, each on its slice of the residual stream.

Shapes: B sequences, N positions, D model width, E experts, S = D / E width of a slice, P positions
that an expert sees, R = B P, X = 3 S, F hidden width, O any width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.attention import RMSNorm, attend
from moelaws.model.casting import cast
from moelaws.model.initial import random_weight
from moelaws.model.mlp import MLP, weight_shapes
from moelaws.spec.model import Model


class SlicedBlock(nn.Module):
    """Expert e is a pre-norm transformer block on columns e S to (e + 1) S (sectional, Fig 4).

    What the experts add to their slices is added to the residual stream by a projection, (S, D) for
    each expert, or directly to the expert's own columns.
    """

    def __init__(self, model: Model, generator: torch.Generator) -> None:
        super().__init__()
        slices = model.slices
        assert slices is not None
        E, S, std = slices.n_experts, model.d_model // slices.n_experts, model.init_std
        self.view = (Chunks if slices.positions == "chunks" else Whole)(E, model.context)
        self.attention_norm = RMSNorm(E, 1, 1, S)
        self.slice_attention = SliceAttention(model, generator)
        self.ffn_norm = RMSNorm(E, 1, 1, S)
        # E layers side by side, with weights as of routed experts
        shapes = weight_shapes(model.ffn.mlp, E, S, slices.d_expert)
        self.slice_ffn = MLP(shapes, std, generator, by_expert)
        self.w_join: nn.Parameter | None = None
        if slices.aggregation == "projection":
            self.w_join = random_weight(std, generator, E, S, model.d_model)

    def forward(self, x_BND: Tensor, rotation: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns the residual stream after the block; ``rotation`` is for the experts' heads."""
        start_EBPS = self.view.split(x_BND)
        normed_EBPS = self.attention_norm(start_EBPS, dtype)
        x_EBPS = start_EBPS + self.slice_attention(normed_EBPS, rotation)
        x_EBPS = x_EBPS + self.slice_ffn(self.ffn_norm(x_EBPS, dtype))
        added_EBPS = x_EBPS - start_EBPS
        added_BND: Tensor
        if self.w_join is None:
            added_BND = self.view.join(added_EBPS)
        else:
            added_BND = self.view.project(added_EBPS.to(dtype), cast(self.w_join, dtype))
        return x_BND + added_BND[:, : x_BND.shape[1]]


class Whole:
    """Every expert sees all positions of its slice."""

    def __init__(self, E: int, context: int) -> None:
        self.E, self.context = E, context

    def split(self, x_BND: Tensor) -> Tensor:
        """Returns the slices (E, B, N, S)."""
        return x_BND.view(*x_BND.shape[:2], self.E, -1).movedim(2, 0)

    def join(self, x_EBPS: Tensor) -> Tensor:
        """Returns (B, N, D) with the slices side by side."""
        return x_EBPS.movedim(0, 2).flatten(2)

    def project(self, x_EBPS: Tensor, w_ESD: Tensor) -> Tensor:
        """Returns (B, N, D), the sum of the experts' maps."""
        return self.join(x_EBPS) @ w_ESD.flatten(0, 1)


class Chunks(Whole):
    """Expert e sees the e-th of E equal chunks of the context alone, in its slice."""

    def split(self, x_BND: Tensor) -> Tensor:
        """Returns the slices (E, B, context / E, S); a shorter sequence is filled up with zeros."""
        # The zeros come last and attention is causal, so no position sees them.
        x_BND = F.pad(x_BND, (0, 0, 0, self.context - x_BND.shape[1]))
        x_BEPES = x_BND.view(len(x_BND), self.E, self.context // self.E, self.E, -1)
        return x_BEPES.diagonal(dim1=1, dim2=3).movedim(-1, 0)

    def join(self, x_EBPS: Tensor) -> Tensor:
        """Returns (B, context, D): each chunk with its own slice, and zeros in the others."""
        x_BEPES = torch.diag_embed(x_EBPS.movedim(0, -1), dim1=1, dim2=3)
        return x_BEPES.flatten(3).flatten(1, 2)

    def project(self, x_EBPS: Tensor, w_ESD: Tensor) -> Tensor:
        """Returns (B, context, D), each chunk mapped by its expert."""
        return by_expert(x_EBPS, w_ESD).movedim(0, 1).flatten(1, 2)


def by_expert(x_EBPS: Tensor, w_ESO: Tensor, b_EO: Tensor | None = None) -> Tensor:
    """Returns each expert's input times its matrix, (E, B, P, O), in the type of the input."""
    E, B, P, _ = x_EBPS.shape
    y_ERO = torch.bmm(x_EBPS.reshape(E, B * P, -1), cast(w_ESO, x_EBPS.dtype))
    if b_EO is not None:
        y_ERO = y_ERO + cast(b_EO, x_EBPS.dtype)[:, None]
    return y_ERO.view(E, B, P, -1)


class SliceAttention(nn.Module):
    """E causal multi-head attentions side by side, each within its slice."""

    def __init__(self, model: Model, generator: torch.Generator) -> None:
        super().__init__()
        slices = model.slices
        assert slices is not None
        E, S, W = slices.n_experts, model.d_model // slices.n_experts, model.slice_head_width
        self.n_heads = slices.n_heads
        self.w_qkv = random_weight(model.init_std, generator, E, S, 3 * S)
        self.w_out = random_weight(model.init_std, generator, E, S, S)
        self.q_norm = RMSNorm(E, 1, 1, 1, W) if model.qk_norm else None
        self.k_norm = RMSNorm(E, 1, 1, 1, W) if model.qk_norm else None

    def forward(self, x_EBPS: Tensor, rotation: Tensor) -> Tensor:
        qkv_EBPX = by_expert(x_EBPS, self.w_qkv)
        qkv_EBPXW = qkv_EBPX.view(*x_EBPS.shape[:3], 3 * self.n_heads, -1)
        y_EBPS = attend(qkv_EBPXW, self.n_heads, (self.q_norm, self.k_norm), rotation)
        return by_expert(y_EBPS, self.w_out)
