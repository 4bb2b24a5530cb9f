"""Dropless GELU experts with biases by grouped matrix products, the ``torch`` back end's second
kind. Written for autograd: the generalization paper's models are small.

Shapes: T tokens, K experts a token, X = T K assignments sorted by expert, D model width, E experts,
F expert width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from moelaws.model.grouped import sort_by_expert, sum_of_rows


class Dispatch(torch.autograd.Function):
    """Rows (X, D) of the tokens that the assignments name; the gradient is a gather and a sum."""

    @staticmethod
    def forward(ctx: Any, x_TD: Tensor, tokens_X: Tensor, places_TK: Tensor) -> Tensor:
        ctx.save_for_backward(places_TK)
        return x_TD.index_select(0, tokens_X)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_XD: Tensor) -> tuple[Tensor | None, ...]:
        return sum_of_rows(dy_XD, *ctx.saved_tensors), None, None


class Combine(torch.autograd.Function):
    """Each token's sum (T, D) of its K rows: the transpose of ``Dispatch``."""

    @staticmethod
    def forward(ctx: Any, y_XD: Tensor, tokens_X: Tensor, places_TK: Tensor) -> Tensor:
        ctx.save_for_backward(tokens_X)
        return sum_of_rows(y_XD, places_TK)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_TD: Tensor) -> tuple[Tensor | None, ...]:
        return dy_TD.index_select(0, *ctx.saved_tensors), None, None


class Bias(torch.autograd.Function):
    """Rows (X, F) of the experts' biases; the gradient sums each expert's run of rows in order."""

    @staticmethod
    def forward(ctx: Any, b_EF: Tensor, experts_X: Tensor, ends_E: Tensor) -> Tensor:
        ctx.save_for_backward(ends_E)
        return b_EF.index_select(0, experts_X)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_XF: Tensor) -> tuple[Tensor | None, ...]:
        (ends_E,) = ctx.saved_tensors
        bounds = F.pad(ends_E.long(), (1, 0))
        db_EF = torch.segment_reduce(dy_XF.float(), "sum", offsets=bounds, initial=0)
        return db_EF.to(dy_XF.dtype), None, None


def grouped_gelu(x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor) -> Tensor:
    """Returns y_t = sum_k gate_tk * (W_out[e]^T gelu(W_in[e]^T x_t + b_in[e]) + b_out[e]).

    ``weights`` are W_in (E, D, F), b_in (E, F), W_out (E, F, D) and b_out (E, D).
    """
    w_in_EDF, b_in_EF, w_out_EFD, b_out_ED = weights
    E, D, F_ = w_in_EDF.shape
    # Grouped products want rows of whole 16 bytes.
    multiple = 16 // x_TD.element_size()
    d, f = -D % multiple, -F_ % multiple
    if d or f:
        x_TD, b_in_EF, b_out_ED = (
            F.pad(t, (0, n)) for t, n in ((x_TD, d), (b_in_EF, f), (b_out_ED, d))
        )
        w_in_EDF, w_out_EFD = F.pad(w_in_EDF, (0, f, 0, d)), F.pad(w_out_EFD, (0, d, 0, f))
    order = sort_by_expert(experts_TK, E)
    tokens_X, places_TK, ends_E = order.tokens_X, order.places_TK, order.ends_E

    def bias_rows(b_EN: Tensor) -> Tensor:
        rows: Tensor = Bias.apply(b_EN, order.experts_X, ends_E)  # type: ignore[no-untyped-call]
        return rows

    x_XD: Tensor = Dispatch.apply(x_TD, tokens_X, places_TK)  # type: ignore[no-untyped-call]
    a_XF = F.gelu(F.grouped_mm(x_XD, w_in_EDF, offs=ends_E) + bias_rows(b_in_EF))
    y_XD = F.grouped_mm(a_XF, w_out_EFD, offs=ends_E) + bias_rows(b_out_ED)
    gates_X = gates_TK.reshape(-1).index_select(0, order.order_X)
    y_XD = y_XD * gates_X.to(y_XD.dtype)[:, None]
    y_TD: Tensor = Combine.apply(y_XD, tokens_X, places_TK)  # type: ignore[no-untyped-call]
    return y_TD[:, :D]
