"""The routed experts alone, forward and backward, against what the machine can do.

Shapes: T tokens, K experts a token, X = T K, D model width, E experts, F expert width, M = 2 F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from moelaws.model.backends import BACKENDS
from speed.clock import Call, geometric_mean, speed, take_turns

Routings = list[tuple[Tensor, Tensor]]  # experts_TK, gates_TK

ROUTINGS = 16  # that take turns: counts of tokens that repeat would flatter kernels that cache
SKEW = 0.2  # standard deviation of the experts' logits, beside the 1 of each token's


def measure_experts(
    widths: Sequence[tuple[int, int]], experts: Sequence[int], T: int, K: int, seconds: float
) -> dict[str, Any]:
    """Share of the speed of bare ``torch.mm`` calls, for each (D, F) and E; fp32."""
    rows: list[dict[str, Any]] = []
    for D, F_ in widths:
        for E in experts:
            routings = draw_routings(T, E, K)
            calls = {"mm": matrix_products(T * K, D, F_), "layer": layer(routings, D, E, F_)}
            times = take_turns(calls, seconds)
            rows.append(
                {
                    "d_model": D,
                    "d_expert": F_,
                    "n_experts": E,
                    "load_cv": load_cv(routings, E),
                    "mm_gflops": 18 * T * K * D * F_ / min(times["mm"]) / 1e9,
                    "layer_seconds": min(times["layer"]),
                    "share": speed(times, "layer", "mm"),
                }
            )
    return {
        "tokens": T,
        "top_k": K,
        "rows": rows,
        **{of: geometric_mean(row["share"][of] for row in rows) for of in ("best", "median")},
    }


def measure_loop(
    widths: Sequence[tuple[int, int]], E: int, T: int, K: int, seconds: float
) -> dict[str, Any]:
    """Speed as a multiple of the loop over experts, weights in one tensor or one an expert."""
    rows: list[dict[str, Any]] = []
    for D, F_ in widths:
        routings = draw_routings(T, E, K)
        calls = {
            "layer": layer(routings, D, E, F_),
            "stacked": loop(routings, D, E, F_, stacked=True),
            "separate": loop(routings, D, E, F_, stacked=False),
        }
        times = take_turns(calls, seconds)
        ratios = {name: speed(times, "layer", name) for name in ("stacked", "separate")}
        rows.append({"d_model": D, "d_expert": F_, **ratios})
    means = {
        f"{kind}_{of}": geometric_mean(row[kind][of] for row in rows)
        for kind in ("stacked", "separate")
        for of in ("best", "median")
    }
    return {"tokens": T, "top_k": K, "n_experts": E, "rows": rows, **means}


def draw_routings(T: int, E: int, K: int) -> Routings:
    """Softmax top-K routings in which some experts are more popular than others."""
    g = torch.Generator().manual_seed(0)
    routings = []
    for _ in range(ROUTINGS):
        logits_TE = torch.randn(T, E, generator=g) + SKEW * torch.randn(E, generator=g)
        gates_TK, experts_TK = logits_TE.softmax(-1).topk(K)
        routings.append((experts_TK, gates_TK / gates_TK.sum(-1, keepdim=True)))
    return routings


def load_cv(routings: Routings, E: int) -> float:
    """Coefficient of variation of the tokens an expert gets, mean over the routings."""
    counts = torch.stack([torch.bincount(e.view(-1), minlength=E) for e, _ in routings]).float()
    return float((counts.std(1, correction=0) / counts.mean(1)).mean())


def matrix_products(X: int, D: int, F_: int) -> Call:
    """The six products of the layer, forward and backward, as one ``torch.mm`` each of X rows."""
    x_XD, dy_XD = torch.randn(X, D), torch.randn(X, D)
    h_XM, a_XF = torch.randn(X, 2 * F_), torch.randn(X, F_)
    w_gate_up_DM, w_down_FD = torch.randn(D, 2 * F_), torch.randn(F_, D)
    factors = (
        (x_XD, w_gate_up_DM),
        (a_XF, w_down_FD),
        (a_XF.t(), dy_XD),
        (dy_XD, w_down_FD.t()),
        (x_XD.t(), h_XM),
        (h_XM, w_gate_up_DM.t()),
    )
    return lambda: [torch.mm(a, b) for a, b in factors]


def layer(routings: Routings, D: int, E: int, F_: int) -> Call:
    """The ``torch`` back end."""
    experts = BACKENDS["torch"].functions["swiglu"]
    return forward_backward(experts, routings, D, draw_weights(D, E, F_))


def loop(routings: Routings, D: int, E: int, F_: int, stacked: bool) -> Call:
    """The loop over the experts that were hit, the way the transformers library goes about it.

    ``stacked`` as since its version 5: one tensor holds a matrix of all experts, and taking one out
    costs the backward pass a tensor of zeros. Else as before: a tensor for each expert.
    """
    gate_up_EMD, down_EDF = (w.transpose(1, 2).contiguous() for w in draw_weights(D, E, F_))
    weights = [gate_up_EMD, down_EDF] if stacked else [*gate_up_EMD, *down_EDF]

    def experts(x_TD: Tensor, experts_TK: Tensor, gates_TK: Tensor, *weights: Tensor) -> Tensor:
        gate_up, down = weights if stacked else (weights[:E], weights[E:])
        mask_EKT = F.one_hot(experts_TK, E).permute(2, 1, 0)
        y_TD = torch.zeros_like(x_TD)
        for e in mask_EKT.sum((1, 2)).nonzero()[:, 0]:
            k_n, t_n = torch.where(mask_EKT[e])
            gate, up = F.linear(x_TD[t_n], gate_up[e]).chunk(2, -1)
            y_nD = F.linear(F.silu(gate) * up, down[e]) * gates_TK[t_n, k_n, None]
            y_TD.index_add_(0, t_n, y_nD)
        return y_TD

    return forward_backward(experts, routings, D, weights)


def draw_weights(D: int, E: int, F_: int) -> list[Tensor]:
    """w_gate_up_EDM and w_down_EFD, the same at each call."""
    g = torch.Generator().manual_seed(1)
    shapes = ((E, D, 2 * F_), (E, F_, D))
    return [torch.randn(shape, generator=g) / shape[1] ** 0.5 for shape in shapes]


def forward_backward(
    experts: Callable[..., Tensor], routings: Routings, D: int, weights: Sequence[Tensor]
) -> Call:
    """A call of ``experts`` that returns the gradients of all its inputs, tokens first; each time
    with the next routing."""
    g = torch.Generator().manual_seed(2)
    x_TD, dy_TD = (torch.randn(len(routings[0][0]), D, generator=g) for _ in range(2))
    leaves = [tensor.detach().requires_grad_() for tensor in (x_TD, *weights)]
    turns = cycle(routings)

    def call() -> tuple[Tensor | None, ...]:
        experts_TK, gates_TK = next(turns)
        gates_TK = gates_TK.detach().requires_grad_()
        y_TD = experts(leaves[0], experts_TK, gates_TK, *leaves[1:])
        # An expert that no token goes to has no gradient in the loop.
        inputs = (leaves[0], gates_TK, *leaves[1:])
        return torch.autograd.grad(y_TD, inputs, dy_TD, allow_unused=True)

    return call
