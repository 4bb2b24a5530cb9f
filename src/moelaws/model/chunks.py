"""Routers that decide once for a chunk of consecutive positions (sectional, sec 5.1.1).

Shapes: B sequences, N positions, C positions a chunk, M = ceil(N / C) chunks a sequence, D model
width, E experts, K experts a token, T = B N tokens, X any number of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from moelaws.model.router import Router, Routing, count
from moelaws.spec.model import MoE, RouteBy


class ChunkRouter(nn.Module):
    """A learned router of chunks that sees nothing of the chunk that it decides for.

    It sees the chunk before: the mean of its hidden states, or the last of them. So a token's
    expert depends on earlier tokens alone, as a decoder must. Before the first chunk there is
    nothing, and the router sees a learned vector in its place. The auxiliary losses are those of
    ``Router`` over chunks, which are equally many tokens each.
    """

    def __init__(self, moe: MoE, d_model: int, init_std: float, generator: torch.Generator) -> None:
        super().__init__()
        assert moe.chunk is not None
        self.moe, self.chunk = moe, moe.chunk
        self.decide = Router(moe, d_model, init_std, generator)
        # Of the size of the normed states that it stands for.
        self.w_start = nn.Parameter(torch.empty(1, d_model))
        nn.init.normal_(self.w_start, generator=generator)

    def forward(
        self, x_BND: Tensor, groups: int = 1, noise: Sequence[torch.Generator] = ()
    ) -> Routing:
        B, N, _ = x_BND.shape
        routing: Routing = self.decide(self._seen(x_BND.float()), groups, noise)
        experts_TK, gates_TK = (
            to_tokens(decided.view(B, -1, self.moe.top_k), N, self.chunk)
            for decided in (routing.experts_TK, routing.gates_TK)
        )
        counts_GE = count(experts_TK, self.moe.n_experts, groups)
        return routing._replace(experts_TK=experts_TK, gates_TK=gates_TK, counts_GE=counts_GE)

    def _seen(self, x_BND: Tensor) -> Tensor:
        """Returns what is known before each chunk, (B, M, D)."""
        B, N, D = x_BND.shape
        whole_BMCD = x_BND[:, : (N - 1) // self.chunk * self.chunk].view(B, -1, self.chunk, D)
        before = whole_BMCD.mean(2) if self.moe.chunk_input == "mean" else whole_BMCD[:, :, -1]
        return torch.cat((self.w_start.expand(B, 1, D), before), dim=1)


class PositionRouter(nn.Module):
    """Chunk c of a sequence goes to the experts of places c K to c K + K - 1, with gates 1 / K.

    A hash of the position: nothing is learned. Place s is that of expert (s + floor(s / E)) mod E.
    So each round of E places has all experts once, and where E divides M K the load is equal. A
    round begins one expert later than the one before, so that experts meet in other company there.
    """

    def __init__(self, moe: MoE, d_model: int, init_std: float, generator: torch.Generator) -> None:
        super().__init__()
        self.moe = moe

    def forward(
        self, x_BND: Tensor, groups: int = 1, noise: Sequence[torch.Generator] = ()
    ) -> Routing:
        B, N, _ = x_BND.shape
        E, K, C = self.moe.n_experts, self.moe.top_k, self.moe.chunk
        assert C is not None
        places_NK = torch.arange(N, device=x_BND.device)[:, None] // C * K
        places_NK = places_NK + torch.arange(K, device=x_BND.device)
        experts_TK = ((places_NK + places_NK // E) % E).repeat(B, 1)
        gates_TK = torch.full_like(experts_TK, 1 / K, dtype=torch.float32)
        zero = torch.zeros((), device=x_BND.device)
        return Routing(experts_TK, gates_TK, count(experts_TK, E, groups), zero, zero)


def to_tokens(x_BMX: Tensor, N: int, chunk: int) -> Tensor:
    """Returns (T, X): what was decided for a chunk, for each of its tokens."""
    return x_BMX.repeat_interleave(chunk, dim=1)[:, :N].flatten(0, 1)


ROUTERS: dict[RouteBy, type[Router] | type[ChunkRouter] | type[PositionRouter]] = {
    "token": Router,
    "chunk": ChunkRouter,
    "position": PositionRouter,
}
