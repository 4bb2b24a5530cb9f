"""Dropless SwiGLU experts by one grouped matrix product over tokens sorted by expert.

Shapes: T tokens, K experts a token, X = T K assignments (in the order of tokens, or sorted by
expert), D model width, E experts, F expert width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


class GroupedExperts(torch.autograd.Function):
    """y_t = sum_k gate_tk * W_down[e_tk]^T (silu(W_gate[e_tk]^T x_t) * W_up[e_tk]^T x_t).

    The permutation's backward is a gather by the inverse permutation and a sum over K: no scatter.
    The gates multiply the F-wide activation, not the D-wide output: both are linear, and the
    outputs of the second product then need not be kept for the gates' gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_TD: Tensor,
        gates_TK: Tensor,
        experts_TK: Tensor,
        w_gate_up_EDM: Tensor,
        w_down_EFD: Tensor,
    ) -> Tensor:
        """Output (T, D); ``w_gate_up_EDM`` has M = 2 F columns, the gate's F first."""
        T, K = experts_TK.shape
        experts_X = experts_TK.reshape(-1)
        order_X = experts_X.argsort(stable=True)
        places_TK = torch.empty_like(order_X)
        places_TK[order_X] = torch.arange(T * K, device=order_X.device)
        places_TK = places_TK.view(T, K)
        tokens_X = order_X // K
        ends_E = torch.bincount(experts_X, minlength=len(w_down_EFD)).cumsum(0).int()

        x_XD = x_TD.index_select(0, tokens_X)
        h_XM = F.grouped_mm(x_XD, w_gate_up_EDM, offs=ends_E)
        gate_XF, up_XF = h_XM.chunk(2, dim=-1)
        gates_X1 = gates_TK.reshape(-1, 1).index_select(0, order_X).to(x_TD.dtype)
        a_XF = (F.silu(gate_XF) * up_XF).mul_(gates_X1)
        y_TD = sum_of_rows(F.grouped_mm(a_XF, w_down_EFD, offs=ends_E), places_TK)
        ctx.save_for_backward(
            x_XD, h_XM, gates_X1, tokens_X, places_TK, ends_E, w_gate_up_EDM, w_down_EFD
        )
        return y_TD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_TD: Tensor) -> tuple[Tensor | None, ...]:
        x_XD, h_XM, gates_X1, tokens_X, places_TK, ends_E, w_gate_up_EDM, w_down_EFD = (
            ctx.saved_tensors
        )
        gate_XF, up_XF = h_XM.chunk(2, dim=-1)
        silu_XF = F.silu(gate_XF)
        a_XF = silu_XF * up_XF

        dy_XD = dy_TD.index_select(0, tokens_X)
        dw_down_EFD = F.grouped_mm((a_XF * gates_X1).t(), dy_XD, offs=ends_E)
        da_XF = F.grouped_mm(dy_XD, w_down_EFD.transpose(1, 2), offs=ends_E)
        dgates_X = (da_XF * a_XF).sum(-1, dtype=torch.float32)
        dgates_TK = dgates_X.index_select(0, places_TK.view(-1)).view(places_TK.shape)
        da_XF.mul_(gates_X1)
        dh_XM = torch.empty_like(h_XM)
        dgate_XF, dup_XF = dh_XM.chunk(2, dim=-1)
        torch.mul(da_XF, silu_XF, out=dup_XF)
        dgate_XF.copy_(torch.ops.aten.silu_backward(da_XF.mul_(up_XF), gate_XF))

        dw_gate_up_EDM = F.grouped_mm(x_XD.t(), dh_XM, offs=ends_E)
        dx_XD = F.grouped_mm(dh_XM, w_gate_up_EDM.transpose(1, 2), offs=ends_E)
        return sum_of_rows(dx_XD, places_TK), dgates_TK, None, dw_gate_up_EDM, dw_down_EFD


def sum_of_rows(rows_XD: Tensor, places_TK: Tensor) -> Tensor:
    """(T, D): for each token the sum of its K rows, read where ``places_TK`` says."""
    T, K = places_TK.shape
    return rows_XD.index_select(0, places_TK.view(-1)).view(T, K, -1).sum(1)


def grouped_experts(
    x_TD: Tensor,
    experts_TK: Tensor,
    gates_TK: Tensor,
    w_gate_up_EDM: Tensor,
    w_down_EFD: Tensor,
) -> Tensor:
    """The ``torch`` back end: expert widths are padded to the 16 bytes of grouped_mm."""
    multiple = 16 // x_TD.element_size()
    missing = -w_down_EFD.shape[1] % multiple
    if missing:
        E, D, M = w_gate_up_EDM.shape
        halves = F.pad(w_gate_up_EDM.view(E, D, 2, M // 2), (0, missing))
        w_gate_up_EDM, w_down_EFD = halves.flatten(2), F.pad(w_down_EFD, (0, 0, 0, missing))
    y: Tensor = GroupedExperts.apply(  # type: ignore[no-untyped-call]
        x_TD, gates_TK, experts_TK, w_gate_up_EDM, w_down_EFD
    )
    return y
