"""The ``torch`` back end: dropless experts by grouped products over tokens sorted by expert.

SwiGLU experts have their own backward pass. GELU experts with biases are written for autograd,
because the generalization paper's models are small.

Shapes: T tokens, K experts a token, X = T K assignments (in the order of tokens, or sorted by
expert), D model width, E experts, F expert width, M = 2 F.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from moelaws.model.fused import fused, mapped

BLACKWELL = (10, 0)  # the capability from which on such GPUs are


class Order(NamedTuple):
    """The assignments of T tokens sorted by expert, tokens in order within each."""

    experts_X: Tensor  # int64: the expert of each sorted assignment
    order_X: Tensor  # int64: the assignment, t K + k, at each place
    tokens_X: Tensor  # int64: the token t of the assignment at each place
    places_TK: Tensor  # int64: the place of each assignment
    ends_E: Tensor  # int32: where each expert's assignments end


def sort_by_expert(experts_TK: Tensor, n_experts: int) -> Order:
    """Sorts the assignments ``experts_TK`` int64 (T, K), each in [0, n_experts)."""
    experts_X, order_X = experts_TK.reshape(-1).sort(stable=True)
    device = order_X.device
    rows_X = torch.arange(len(order_X), device=device)
    places_X = torch.empty_like(order_X).scatter_(0, order_X, rows_X)
    ends_E = torch.searchsorted(
        experts_X, torch.arange(n_experts, device=device), right=True, out_int32=True
    )
    tokens_X = order_X // experts_TK.shape[1]
    return Order(experts_X, order_X, tokens_X, places_X.view(experts_TK.shape), ends_E)


def sum_of_rows(rows_XD: Tensor, places_TK: Tensor) -> Tensor:
    """Returns each token's sum (T, D) of its K rows, which are at ``places_TK``, in that order."""
    if rows_XD.is_cuda:  # there embedding_bag takes seven times as long as reading the rows
        return fused_sum_of_rows(rows_XD, places_TK)
    return F.embedding_bag(places_TK, rows_XD, mode="sum")


@fused(rows=2)
def fused_sum_of_rows(rows_XD: Tensor, places_TK: Tensor) -> Tensor:
    """Returns ``sum_of_rows``, added in fp32 and rounded once."""
    sum_TD = rows_XD.index_select(0, places_TK[:, 0]).float()
    for k in range(1, places_TK.shape[1]):
        sum_TD = sum_TD + rows_XD.index_select(0, places_TK[:, k]).float()
    return sum_TD.to(rows_XD.dtype)


def padded(x: Tensor, axes: int = 1) -> Tensor:
    """Returns ``x`` with zeros behind its last axes up to whole 16 bytes, as grouped_mm wants."""
    multiple = 16 // x.element_size()
    missing = [zeros for size in x.shape[: -axes - 1 : -1] for zeros in (0, -size % multiple)]
    return F.pad(x, missing) if any(missing) else x


def by_group(a_XN: Tensor, b_XM: Tensor, ends_E: Tensor) -> Tensor:
    """Returns each group's product a^T b, (E, N, M), with exact zeros for a group without rows.

    On an H100 grouped_mm writes them; on Blackwell it has left such a group's memory as it was.
    """
    products_ENM = F.grouped_mm(a_XN.t(), b_XM, offs=ends_E)
    if a_XN.is_cuda and torch.cuda.get_device_capability(a_XN.device) >= BLACKWELL:
        zero_where_empty(products_ENM, ends_E)
    return products_ENM


def zero_where_empty(products_ENM: Tensor, ends_E: Tensor) -> None:
    """Writes zeros, over NaN too, to the products of groups without rows."""
    rows_E = ends_E.diff(prepend=ends_E.new_zeros(1))
    products_ENM.masked_fill_((rows_E == 0)[:, None, None], 0)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_XN: Tensor, w_ENM: Tensor, ends_E: Tensor) -> Tensor:
        ctx.save_for_backward(x_XN, w_ENM, ends_E)
        return F.grouped_mm(x_XN, w_ENM, offs=ends_E)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_XM: Tensor) -> tuple[Tensor | None, ...]:
        x_XN, w_ENM, ends_E = ctx.saved_tensors
        dx_XN = F.grouped_mm(dy_XM, w_ENM.transpose(1, 2), offs=ends_E)
        return dx_XN, by_group(x_XN, dy_XM, ends_E), None


def product(x_XN: Tensor, w_ENM: Tensor, ends_E: Tensor) -> Tensor:
    """Returns each group's rows times its matrix, (X, M); gradients are those of ``by_group``."""
    w_padded = padded(w_ENM, 2)
    y_XM: Tensor = _Product.apply(padded(x_XN), w_padded, ends_E)  # type: ignore[no-untyped-call]
    # A slice of all would cost the backward pass a copy.
    return y_XM if w_padded is w_ENM else y_XM[:, : w_ENM.shape[2]]


class GroupedExperts(torch.autograd.Function):
    """y_t = sum_k gate_tk * W_down[e_tk]^T (silu(W_gate[e_tk]^T x_t) * W_up[e_tk]^T x_t).

    The backward pass of the permutation is a gather by the inverse permutation and a sum over K,
    not a scatter. The gates multiply the F-wide activation, not the D-wide output. The result is
    the same, because W_down is linear, and the gates' gradient then needs no output of W_down.
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
        """Returns the output (T, D); ``w_gate_up_EDM`` has the gate's F columns first."""
        order = sort_by_expert(experts_TK, len(w_down_EFD))
        x_XD = x_TD.index_select(0, order.tokens_X)
        h_XM = F.grouped_mm(x_XD, w_gate_up_EDM, offs=order.ends_E)
        gates_X = gates_TK.reshape(-1).index_select(0, order.order_X)
        gates_X1 = gates_X.to(x_TD.dtype)[:, None]
        a_XF, silu_XF = activation(h_XM, gates_X1)
        y_XD = F.grouped_mm(a_XF, w_down_EFD, offs=order.ends_E)
        ctx.save_for_backward(x_XD, h_XM, silu_XF, gates_X1, w_gate_up_EDM, w_down_EFD, *order[2:])
        return sum_of_rows(y_XD, order.places_TK)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_TD: Tensor) -> tuple[Tensor | None, ...]:
        x_XD, h_XM, silu_XF, gates_X1, w_gate_up_EDM, w_down_EFD, tokens_X, places_TK, ends_E = (
            ctx.saved_tensors
        )
        dy_XD = dy_TD.index_select(0, tokens_X)
        da_XF = F.grouped_mm(dy_XD, w_down_EFD.transpose(1, 2), offs=ends_E)  # without the gates
        a_XF, dgates_X, dh_XM = activation_backward(h_XM, silu_XF, gates_X1, da_XF)
        dw_down_EFD = by_group(a_XF, dy_XD, ends_E)
        dgates_TK = dgates_X.index_select(0, places_TK.view(-1)).view(places_TK.shape)
        dw_gate_up_EDM = by_group(x_XD, dh_XM, ends_E)
        dx_XD = F.grouped_mm(dh_XM, w_gate_up_EDM.transpose(1, 2), offs=ends_E)
        return sum_of_rows(dx_XD, places_TK), dgates_TK, None, dw_gate_up_EDM, dw_down_EFD


def activation(h_XM: Tensor, gates_X1: Tensor) -> tuple[Tensor, Tensor | None]:
    """Returns silu(gate) * up times the token's gate (X, F), and what the backward pass takes.

    On the CPU that is the factor silu alone, because its products are cheap to repeat; on a GPU
    nothing, because all of it is.
    """
    if h_XM.is_cuda:
        return fused_activation(h_XM, gates_X1), None
    gate_XF, up_XF = h_XM.chunk(2, dim=-1)
    silu_XF = F.silu(gate_XF)
    return (silu_XF * up_XF).mul_(gates_X1), silu_XF


def activation_backward(
    h_XM: Tensor, silu_XF: Tensor | None, gates_X1: Tensor, da_XF: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the activation anew (X, F), and the gradients of gates (X,) and of ``h_XM``.

    ``da_XF`` is the gradient of silu(gate) * up times the gate, and may be overwritten.
    """
    # Both halves are written in place, without a concatenation or a copy.
    dh_XM = torch.empty_like(h_XM)
    dh_gate_XF, dh_up_XF = dh_XM.chunk(2, dim=-1)
    if silu_XF is None:
        a_XF, dgates_X = fused_activation_backward(h_XM, gates_X1, da_XF, dh_gate_XF, dh_up_XF)
        return a_XF, dgates_X, dh_XM
    gate_XF, up_XF = h_XM.chunk(2, dim=-1)
    a_XF = (silu_XF * up_XF).mul_(gates_X1)
    dup_XF = silu_XF * da_XF
    dgates_X = torch.mul(dup_XF, up_XF, out=dh_up_XF).sum(-1, dtype=torch.float32)
    torch.mul(dup_XF, gates_X1, out=dh_up_XF)
    da_XF.mul_(up_XF).mul_(gates_X1)
    torch.ops.aten.silu_backward.grad_input(da_XF, gate_XF, grad_input=dh_gate_XF)
    return a_XF, dgates_X, dh_XM


@fused(rows=2)
def fused_activation(h_XM: Tensor, gates_X1: Tensor) -> Tensor:
    """Returns the first of ``activation`` in one kernel, in fp32 until it is rounded."""
    gate_XF, up_XF = h_XM.float().chunk(2, dim=-1)
    return (gate_XF * gate_XF.sigmoid() * up_XF * gates_X1).to(h_XM.dtype)


@fused(rows=5)
def fused_activation_backward(
    h_XM: Tensor, gates_X1: Tensor, da_XF: Tensor, dh_gate_XF: Tensor, dh_up_XF: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the first two of ``activation_backward`` and writes the third, in one kernel.

    All is in fp32 until it is rounded.
    """
    gate_XF, up_XF = h_XM.float().chunk(2, dim=-1)
    sigmoid_XF = gate_XF.sigmoid()
    silu_XF, da = gate_XF * sigmoid_XF, da_XF.float()
    dgates_X = (silu_XF * up_XF * da).sum(-1)
    da = da * gates_X1
    dh_gate_XF.copy_(da * up_XF * (sigmoid_XF + silu_XF * (1 - sigmoid_XF)))
    dh_up_XF.copy_(da * silu_XF)
    return (silu_XF * up_XF * gates_X1).to(h_XM.dtype), dgates_X


def grouped_experts(
    x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, w_gate_up_EDM: Tensor, w_down_EFD: Tensor
) -> Tensor:
    """Returns the output (T, D) of the ``torch`` back end's SwiGLU experts, for any widths.

    grouped_mm takes rows of whole 16 bytes. Other rows are padded with zeros, which change no sum.
    """
    E, F_, D = w_down_EFD.shape
    multiple = 16 // x_TD.element_size()
    d, f = -D % multiple, -F_ % multiple
    if d or f:
        x_TD = F.pad(x_TD, (0, d))
        halves_ED2F = F.pad(w_gate_up_EDM.view(E, D, 2, F_), (0, f, 0, 0, 0, d))
        w_gate_up_EDM, w_down_EFD = halves_ED2F.flatten(2), F.pad(w_down_EFD, (0, d, 0, f))
    y_TD: Tensor = GroupedExperts.apply(  # type: ignore[no-untyped-call]
        x_TD, gates_TK, experts_TK, w_gate_up_EDM, w_down_EFD
    )
    return y_TD[:, :D] if d else y_TD


def grouped_gelu(x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor) -> Tensor:
    """Returns y_t = sum_k gate_tk * (W_out[e]^T gelu(W_in[e]^T x_t + b_in[e]) + b_out[e]).

    ``weights`` are W_in (E, D, F), b_in (E, F), W_out (E, F, D) and b_out (E, D).
    """
    w_in_EDF, b_in_EF, w_out_EFD, b_out_ED = weights
    order = sort_by_expert(experts_TK, len(w_in_EDF))

    def of_tokens(x_TD: Tensor) -> Tensor:
        return x_TD.index_select(0, order.tokens_X)

    def sum_of_token(rows_XD: Tensor) -> Tensor:
        return sum_of_rows(rows_XD, order.places_TK)

    def of_experts(b_EN: Tensor) -> Tensor:
        return b_EN.index_select(0, order.experts_X)

    # The sum of an expert's rows is a product with ones, padded to rows of 16 bytes.
    def sum_of_expert(rows_XN: Tensor) -> Tensor:
        ones_XI = padded(rows_XN.new_ones(len(rows_XN), 1))
        return by_group(ones_XI, padded(rows_XN), order.ends_E)[:, 0, : rows_XN.shape[1]]

    # The gradients of gathers are gathers and sums, not scatters.
    x_XD = mapped(x_TD, of_tokens, sum_of_token)
    b_in_XF, b_out_XD = (mapped(b, of_experts, sum_of_expert) for b in (b_in_EF, b_out_ED))
    a_XF = F.gelu(product(x_XD, w_in_EDF, order.ends_E) + b_in_XF)
    y_XD = product(a_XF, w_out_EFD, order.ends_E) + b_out_XD
    gates_X = gates_TK.reshape(-1).index_select(0, order.order_X)
    y_XD = y_XD * gates_X.to(y_XD.dtype)[:, None]
    return mapped(y_XD, sum_of_token, of_tokens)
