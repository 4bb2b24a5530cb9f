"""The loss head: cross-entropy of the next token, with the logits of a few rows at a time.

The logits of a whole batch would be the largest tensor of a step, several times over. Here a chunk
of them exists at once, and its gradients are computed while it is there.

Shapes: T tokens, D model width, V vocabulary, C rows of a chunk.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from moelaws.model.fused import fused

# Entries of a chunk of logits: 64 MB in fp32 on the CPU. On an H100 smaller chunks are slower,
# because a step then starts more kernels, and larger ones are hardly faster.
ENTRIES = {"cpu": 1 << 24, "cuda": 1 << 26}


def token_losses(h_TD: Tensor, head_VD: Tensor, target_T: Tensor) -> Tensor:
    """Returns the nats of each target, fp32 (T,); it is not differentiable.

    ``h_TD`` and ``head_VD`` have the computing type, and ``target_T`` is int64.
    """
    with torch.no_grad():
        nats = [
            F.cross_entropy(F.linear(h_TD[rows], head_VD).float(), target_T[rows], reduction="none")
            for rows in _chunks(h_TD, head_VD)
        ]
        return torch.cat(nats)


def mean_loss(h_TD: Tensor, head_VD: Tensor, target_T: Tensor) -> Tensor:
    """Returns the mean nats of the targets, an fp32 scalar with gradients of both factors."""
    if not torch.is_grad_enabled():
        return token_losses(h_TD, head_VD, target_T).mean()
    loss: Tensor = _MeanLoss.apply(h_TD, head_VD, target_T)  # type: ignore[no-untyped-call]
    return loss


class _MeanLoss(torch.autograd.Function):
    """The forward pass leaves the gradients of the sum; the backward pass scales them."""

    @staticmethod
    def forward(ctx: Any, h_TD: Tensor, head_VD: Tensor, target_T: Tensor) -> Tensor:
        dh_TD = torch.empty_like(h_TD)
        dhead_VD: Tensor | None = None
        losses = []
        for rows in _chunks(h_TD, head_VD):
            logits_CV = F.linear(h_TD[rows], head_VD)
            nats_C, dlogits_CV = _nats_and_gradient(logits_CV, target_T[rows])
            losses.append(nats_C)
            torch.mm(dlogits_CV, head_VD, out=dh_TD[rows])
            product_VD = dlogits_CV.t() @ h_TD[rows]
            # Sums over chunks are in fp32, so that they round no more than one product does.
            dhead_VD = product_VD if dhead_VD is None else dhead_VD.float().add_(product_VD)
        assert dhead_VD is not None
        ctx.save_for_backward(dh_TD, dhead_VD.to(head_VD.dtype))
        return torch.cat(losses).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, Tensor, None]:
        dh_TD, dhead_VD = ctx.saved_tensors
        # In fp32, for a weight rounded to bf16 would scale all gradients alike by some thousandths.
        weight = dloss / len(dh_TD)
        dh_TD, dhead_VD = ((t.float() * weight).to(t.dtype) for t in (dh_TD, dhead_VD))
        return dh_TD, dhead_VD, None


def _chunks(h_TD: Tensor, head_VD: Tensor) -> Iterator[slice]:
    """Cuts the rows into equal parts of about ENTRIES logits at most; the last may be shorter."""
    parts = -(-len(h_TD) * len(head_VD) // ENTRIES[h_TD.device.type])
    size = -(-len(h_TD) // max(parts, 1))
    return (slice(first, first + size) for first in range(0, len(h_TD), size))


def _nats_and_gradient(logits_CV: Tensor, target_C: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the nats (C,) and the gradient of their sum by the logits, in the logits' type."""
    if logits_CV.is_cuda:
        return fused_nats_and_gradient(logits_CV, target_C)
    ln_p_CV = F.log_softmax(logits_CV, dim=-1, dtype=torch.float32)
    nats_C = F.nll_loss(ln_p_CV, target_C, reduction="none")
    dlogits_CV = ln_p_CV.exp_()
    dlogits_CV.scatter_add_(1, target_C[:, None], -torch.ones_like(nats_C)[:, None])
    return nats_C, dlogits_CV.to(logits_CV.dtype)


@fused(rows=2)
def fused_nats_and_gradient(logits_CV: Tensor, target_C: Tensor) -> tuple[Tensor, Tensor]:
    """The same, as one kernel that reads and writes each row once."""
    logits = logits_CV.float()
    lse_C1 = logits.logsumexp(-1, keepdim=True)
    places_V = torch.arange(logits.shape[1], device=logits.device)
    is_target_CV = places_V == target_C[:, None]
    nats_C = lse_C1[:, 0] - torch.where(is_target_CV, logits, 0.0).sum(-1)
    dlogits_CV = torch.exp(logits - lse_C1) - is_target_CV.float()
    return nats_C, dlogits_CV.to(logits_CV.dtype)
