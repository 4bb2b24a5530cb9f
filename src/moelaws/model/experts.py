"""The layer of experts: router, routed experts with a back end, and shared experts.

Shapes: B sequences, N positions, T = B N tokens, K experts a token, D model width, E experts, F
expert width, M = 2 F.
"""

import torch
from torch import Tensor, nn

from moelaws.model.backends import Backend
from moelaws.model.casting import cast
from moelaws.model.initial import add_weights
from moelaws.model.mlp import MLP, dense_shapes, weight_shapes
from moelaws.model.router import ROUTERS, Noise, Routing, within_capacity
from moelaws.spec.model import MoE


class RoutedExperts(nn.Module):
    """E experts of width F, applied by a back end; one tensor stacks a matrix of all experts."""

    def __init__(
        self, moe: MoE, d_model: int, init_std: float, backend: Backend, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.function = backend.functions[moe.mlp]
        shapes = weight_shapes(moe.mlp, moe.n_experts, d_model, moe.d_expert)
        self.names = add_weights(self, shapes, init_std, generator)

    def forward(self, x_TD: Tensor, routing: Routing) -> Tensor:
        weights = (cast(getattr(self, name), x_TD.dtype) for name in self.names)
        return self.function(x_TD, routing.experts_TK, routing.gates_TK, *weights)


class MoELayer(nn.Module):
    """Router, routed experts, and shared experts: in sum, one MLP of n_shared times the width."""

    def __init__(
        self,
        moe: MoE,
        d_model: int,
        init_std: float,
        backend: Backend,
        generator: torch.Generator,
        layer: int = 0,
    ) -> None:
        super().__init__()
        self.settings = moe
        self.capacity: int | None = None  # of an expert, in assignments of a sequence
        self.scale = 1.0  # of what the routed experts add
        self.router = ROUTERS[moe.route_by](moe, d_model, init_std, generator, layer)
        self.routed_experts = RoutedExperts(moe, d_model, init_std, backend, generator)
        shapes = dense_shapes(moe.mlp, d_model, moe.n_shared * moe.d_expert)
        self.shared_experts = MLP(shapes, init_std, generator) if moe.n_shared else None

    def forward(
        self, x_BND: Tensor, groups: int, noise: Noise = (), tokens_BN: Tensor | None = None
    ) -> tuple[Tensor, Routing]:
        """Returns (T, D) and the routing; ``x_BND`` has the computing type, the router is fp32."""
        routing = self.router(x_BND, groups, noise, tokens_BN)
        if self.capacity is not None:
            routing = within_capacity(routing, len(x_BND), self.capacity)
        x_TD = x_BND.flatten(0, -2)
        y_TD = self.routed_experts(x_TD, routing)
        if self.scale != 1:
            y_TD = y_TD * self.scale
        if self.shared_experts is not None:
            y_TD = y_TD + self.shared_experts(x_TD)
        return y_TD, routing
