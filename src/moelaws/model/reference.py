"""The ``reference`` back end: a plain loop over tokens and their experts, in float64.

Shapes: T tokens, K experts a token, D model width, E experts, F expert width, M = 2 F.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def swiglu_loop(
    x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, w_gate_up_EDM: Tensor, w_down_EFD: Tensor
) -> Tensor:
    """Computes y_t = sum over k of gate_tk * SwiGLU of expert e_tk at x_t."""
    gate_up, down = w_gate_up_EDM.double(), w_down_EFD.double()

    def expert(e: int, x_D: Tensor) -> Tensor:
        gate, up = (x_D @ gate_up[e]).chunk(2)
        return (F.silu(gate) * up) @ down[e]

    return _loop(expert, x_TD, experts_TK, gates_TK)


def gelu_loop(x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor) -> Tensor:
    """Computes y_t = sum over k of gate_tk * GELU MLP of expert e_tk at x_t.

    ``weights`` are W_in (E, D, F), b_in (E, F), W_out (E, F, D) and b_out (E, D).
    """
    w_in, b_in, w_out, b_out = (w.double() for w in weights)

    def expert(e: int, x_D: Tensor) -> Tensor:
        return F.gelu(x_D @ w_in[e] + b_in[e]) @ w_out[e] + b_out[e]

    return _loop(expert, x_TD, experts_TK, gates_TK)


def _loop(
    expert: Callable[[int, Tensor], Tensor], x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor
) -> Tensor:
    rows = []
    for x_D, chosen, gates_K in zip(
        x_TD.double(), experts_TK.tolist(), gates_TK.double(), strict=True
    ):
        y_D = torch.zeros_like(x_D)
        for e, gate in zip(chosen, gates_K, strict=True):
            y_D = y_D + gate * expert(e, x_D)
        rows.append(y_D)
    return torch.stack(rows).to(x_TD.dtype)
