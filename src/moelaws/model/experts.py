"""The feed-forward layers: dense SwiGLU, and routed experts behind one interface of back ends.

Shapes: T tokens, K experts a token, D model width, E experts, F expert width, M = 2 F.

A back end computes, for given assignments and gates, the same sum over a token's experts from the
same parameters: it changes the speed and the rounding, never the model. No token is ever dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.grouped import grouped_experts
from moelaws.model.router import Router, Routing
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model, MoE

# (x_TD, experts_TK, gates_TK, w_gate_up_EDM, w_down_EFD) -> y_TD
ExpertsFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Backend:
    """One way to compute the routed experts."""

    name: str
    function: ExpertsFunction
    about: str
    # Why this machine or this model cannot use it, and what to do; empty when it can.
    obstacle: Callable[[Model, str, str], str]


def _torch_obstacle(model: Model, device: str, precision: str) -> str:
    if not isinstance(model.ffn, MoE):
        return ""  # a dense model calls no back end
    if not hasattr(F, "grouped_mm"):
        return f"torch {torch.__version__} has no grouped_mm; install torch 2.10 or later"
    multiple = 4 if precision == "fp32" else 8
    if model.d_model % multiple:
        return (
            f"model.d_model is {model.d_model}; its grouped matrix products in {precision} want "
            f"a multiple of {multiple}"
        )
    return ""


def _reference_obstacle(model: Model, device: str, precision: str) -> str:
    return "" if device == "cpu" else "it computes on the CPU alone; use --device cpu"


def reference_experts(
    x_TD: Tensor,
    experts_TK: Tensor,
    gates_TK: Tensor,
    w_gate_up_EDM: Tensor,
    w_down_EFD: Tensor,
) -> Tensor:
    """The plain loop over tokens and their experts, in float64."""
    gate_up, down, gates = w_gate_up_EDM.double(), w_down_EFD.double(), gates_TK.double()
    rows = []
    for t, x in enumerate(x_TD.double()):
        y = torch.zeros_like(x)
        for k, e in enumerate(experts_TK[t].tolist()):
            gate, up = (x @ gate_up[e]).chunk(2)
            y = y + gates[t, k] * ((F.silu(gate) * up) @ down[e])
        rows.append(y)
    return torch.stack(rows).to(x_TD.dtype)


BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend(
            "torch", grouped_experts, "sorted tokens, grouped matrix products", _torch_obstacle
        ),
        Backend("reference", reference_experts, "a float64 loop over tokens", _reference_obstacle),
    )
}
AUTO = ("torch",)  # in order of preference


def choose_backend(name: str, model: Model, device: str, precision: str) -> tuple[Backend, str]:
    """The back end of that name, or the first usable one for ``auto``; and a line that says why.

    Raises:
        UserError: when it is unknown or cannot be used, with what is missing.
    """
    if name != "auto":
        if name not in BACKENDS:
            raise UserError(f"back end {name!r} is unknown; there are auto, {', '.join(BACKENDS)}")
        obstacle = BACKENDS[name].obstacle(model, device, precision)
        if obstacle:
            raise UserError(f"back end {name} cannot be used: {obstacle}")
        return BACKENDS[name], f"back end {name} on {device}, as asked"
    obstacles = {n: BACKENDS[n].obstacle(model, device, precision) for n in AUTO}
    for n, obstacle in obstacles.items():
        if not obstacle:
            about = BACKENDS[n].about
            return BACKENDS[n], f"back end {n} on {device} (auto: first usable; {about})"
    reasons = "; ".join(f"{n}: {obstacle}" for n, obstacle in obstacles.items())
    raise UserError(f"no back end can be used: {reasons}")


class SwiGLU(nn.Module):
    """A dense SwiGLU layer (Shazeer, 2020): 3 * D * width parameters, no biases."""

    def __init__(
        self, d_model: int, width: int, init_std: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.w_gate_up = nn.Parameter(torch.empty(2 * width, d_model))
        self.w_down = nn.Parameter(torch.empty(d_model, width))
        for weight in (self.w_gate_up, self.w_down):
            nn.init.normal_(weight, std=init_std, generator=generator)

    def forward(self, x_TD: Tensor) -> Tensor:
        gate, up = F.linear(x_TD, self.w_gate_up.to(x_TD.dtype)).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, self.w_down.to(x_TD.dtype))


class RoutedExperts(nn.Module):
    """E SwiGLU experts of width F: 3 * E * D * F parameters; a back end applies them."""

    def __init__(
        self,
        moe: MoE,
        d_model: int,
        init_std: float,
        backend: Backend,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        E, F_ = moe.n_experts, moe.d_expert
        self.backend = backend
        self.w_gate_up = nn.Parameter(torch.empty(E, d_model, 2 * F_))
        self.w_down = nn.Parameter(torch.empty(E, F_, d_model))
        for weight in (self.w_gate_up, self.w_down):
            nn.init.normal_(weight, std=init_std, generator=generator)

    def forward(self, x_TD: Tensor, routing: Routing) -> Tensor:
        return self.backend.function(
            x_TD,
            routing.experts_TK,
            routing.gates_TK,
            self.w_gate_up.to(x_TD.dtype),
            self.w_down.to(x_TD.dtype),
        )


class MoELayer(nn.Module):
    """Router, routed experts and, side by side in one SwiGLU, the shared ones.

    The sum of n_shared SwiGLU experts is one SwiGLU of n_shared times the width.
    """

    def __init__(
        self,
        moe: MoE,
        d_model: int,
        init_std: float,
        backend: Backend,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.router = Router(moe, d_model, init_std, generator)
        self.routed_experts = RoutedExperts(moe, d_model, init_std, backend, generator)
        width = moe.n_shared * moe.d_expert
        self.shared_experts = SwiGLU(d_model, width, init_std, generator) if width else None

    def forward(self, x_TD: Tensor, groups: int) -> tuple[Tensor, Routing]:
        """Output (T, D) and the routing; ``x_TD`` is in the computing type, the router in fp32."""
        routing = self.router(x_TD, groups)
        y_TD = self.routed_experts(x_TD, routing)
        if self.shared_experts is not None:
            y_TD = y_TD + self.shared_experts(x_TD)
        return y_TD, routing
