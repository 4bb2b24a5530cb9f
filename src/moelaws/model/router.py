"""Routers: which experts a token goes to, with which gates, and the losses that balance the load.

The settings and the counts of a router are a class of ``spec.experts``; its module is here.

Shapes: B sequences, N positions, T = B N tokens, D model width, E experts, K experts a token, G
balance groups, C positions a chunk, M = ceil(N / C) chunks a sequence, R rows or B sequences of X
assignments.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from moelaws.model.fused import fused
from moelaws.model.initial import random_weight
from moelaws.spec.experts import ChunkRouted, MoE, PositionRouted

Noise = Sequence[torch.Generator]  # of the router's jitter: a generator for each balance group
TINY = 1e-20  # a sum of sigmoids, which may all be zero, is taken as no less
ROWS_OF_A_GROUP = 16  # the most rows in which a group's assignments are counted


class Routing(NamedTuple):
    """What a router decided for T tokens, and its two auxiliary losses (scalars)."""

    experts_TK: Tensor  # int64: the K chosen experts, the first choice first
    gates_TK: Tensor  # their weights, fp32
    counts_GE: Tensor  # int64: the assignments of each balance group to each expert
    balance: Tensor
    z: Tensor
    dropped: Tensor | None = None  # int64: assignments beyond capacity, if there is one


class Router(nn.Module):
    """Takes scores of all E experts, a softmax or sigmoids, then the K largest; always in fp32.

    ``normalize_top_k`` divides the K gates by their sum, which makes them the softmax over the
    selected experts alone. In training, ``jitter`` multiplies the router's inputs by noise, uniform
    in [1 - jitter, 1 + jitter] (Fedus et al., 2021, sec 2.4). The ``bias``, if there is one, is
    added to the scores for the selection alone, and gates are without it (Wang et al., 2024, Eq 3).
    The auxiliary losses are returned without their coefficients:

    - balance: E * sum_i f_i p_i, mean over groups, where f_i is the fraction of the group's T K / G
      assignments that expert i got and p_i its mean probability. It is 1 if the load is uniform and
      E if one expert gets all (Fedus et al., 2021, Eq 4, with f counted over top-k assignments).
      Probabilities of sigmoids are the scores over their sum (DeepSeek-V3, 2024, Eq 19).
    - z: mean over tokens of logsumexp(logits)^2 (Zoph et al., 2022, Eq 5).
    """

    bias: Tensor | None  # (E,): no parameter; ``Transformer.move_biases`` moves it

    def __init__(
        self,
        moe: MoE,
        d_model: int,
        init_std: float,
        generator: torch.Generator,
        layer: int = 0,
    ) -> None:
        super().__init__()
        self.moe = moe
        self.weight = random_weight(init_std, generator, moe.n_experts, d_model)
        bias = torch.zeros(moe.n_experts) if moe.balance == "bias" else None
        self.register_buffer("bias", bias)

    def forward(
        self, x: Tensor, groups: int = 1, noise: Noise = (), tokens_BN: Tensor | None = None
    ) -> Routing:
        """Routes tokens (..., D); each of ``groups`` equal runs of them is balanced by itself.

        ``noise`` has a generator for each group, so that a group's jitter does not depend on what
        is computed beside it. Evaluation passes none. This router looks at hidden states alone:
        the ids ``tokens_BN`` and the index of its layer are there for others.
        """
        E, K = self.moe.n_experts, self.moe.top_k
        x_TD = x.flatten(0, -2).float()
        if self.moe.jitter and noise:
            x_TD = x_TD * self._jitter(x_TD, noise)
        logits_TE = F.linear(x_TD, self.weight)
        p_TE, lse_T = softmax(logits_TE)
        scores_TE = p_TE
        if self.moe.gate == "sigmoid":
            scores_TE = logits_TE.sigmoid()
            p_TE = scores_TE / scores_TE.sum(-1, keepdim=True).clamp(min=TINY)
        if self.bias is None:
            gates_TK, experts_TK = scores_TE.topk(K, dim=-1)
        else:
            experts_TK = (scores_TE + self.bias).topk(K, dim=-1).indices
            gates_TK = scores_TE.gather(1, experts_TK)
        if self.moe.normalize_top_k:
            gates_TK = gates_TK / gates_TK.sum(-1, keepdim=True).clamp(min=TINY)
        if self.moe.route_scale != 1:
            gates_TK = gates_TK * self.moe.route_scale
        counts_GE = count(experts_TK, E, groups)
        fraction_GE = counts_GE * (groups / experts_TK.numel())
        mean_GE = p_TE.view(groups, -1, E).mean(1)
        balance = E / groups * (fraction_GE * mean_GE).sum()
        return Routing(experts_TK, gates_TK, counts_GE, balance, lse_T.square().mean())

    def _jitter(self, x_TD: Tensor, noise: Noise) -> Tensor:
        T, D = x_TD.shape
        size = (T // len(noise), D)
        uniform_TD = torch.cat([torch.rand(size, generator=g, device=x_TD.device) for g in noise])
        return 1 + self.moe.jitter * (2 * uniform_TD - 1)


@fused(rows=1)
def softmax(logits_TE: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the probabilities (T, E) and the logarithms of their divisors (T,)."""
    lse_T = torch.logsumexp(logits_TE, dim=-1)
    return torch.exp(logits_TE - lse_T[:, None]), lse_T


def count(experts_TK: Tensor, n_experts: int, groups: int) -> Tensor:
    """Counts each expert's assignments in each of ``groups`` equal runs of tokens: int64 (G, E).

    It avoids ``bincount``, which makes the host wait for a GPU to learn how many bins there are.
    """
    # A group has several of the R rows if it can: on a GPU, additions to one number wait in line.
    rows = groups * math.gcd(len(experts_TK) // groups, ROWS_OF_A_GROUP)
    experts_RX = experts_TK.reshape(rows, -1)
    counts_RE = torch.zeros(rows, n_experts, dtype=torch.int64, device=experts_TK.device)
    counts_RE.scatter_add_(1, experts_RX, torch.ones_like(experts_RX))
    return counts_RE.view(groups, -1, n_experts).sum(1)


def within_capacity(routing: Routing, sequences: int, limit: int) -> Routing:
    """Sets the gates of assignments beyond the first ``limit`` of an expert to 0; counts them.

    Each of the ``sequences`` fills the experts by itself, token after token, and a token's choices
    in their order. So what a token keeps depends on earlier tokens of its sequence alone. In GShard
    (Lepikhin et al., 2021) first choices of later tokens come before second choices of earlier
    ones, which shows a token what comes behind it.
    """
    experts_BX = routing.experts_TK.view(sequences, -1)
    sorted_BX, order_BX = experts_BX.sort(dim=1, stable=True)
    firsts_BX = torch.searchsorted(sorted_BX, sorted_BX)  # the place of the expert's first one
    places_BX = torch.arange(experts_BX.shape[1], device=experts_BX.device) - firsts_BX
    kept_BX = torch.empty_like(experts_BX).scatter_(1, order_BX, (places_BX < limit).long())
    gates_TK = routing.gates_TK * kept_BX.view_as(routing.experts_TK)
    return routing._replace(gates_TK=gates_TK, dropped=kept_BX.numel() - kept_BX.sum())


class ChunkRouter(nn.Module):
    """A learned router of chunks that sees nothing of the chunk that it decides for.

    It sees the mean hidden state of the chunk before, or the last one. So a token's expert depends
    on earlier tokens alone, as it must in a decoder. For the first chunk the router sees a learned
    vector instead. The auxiliary losses are those of ``Router`` over chunks.
    """

    def __init__(
        self,
        moe: ChunkRouted,
        d_model: int,
        init_std: float,
        generator: torch.Generator,
        layer: int = 0,
    ) -> None:
        super().__init__()
        self.moe, self.chunk = moe, moe.chunk
        self.decide = Router(moe, d_model, init_std, generator)
        # Its entries have the size of those of the normed states that it stands for.
        self.w_start = random_weight(1.0, generator, 1, d_model)

    def forward(
        self, x_BND: Tensor, groups: int = 1, noise: Noise = (), tokens_BN: Tensor | None = None
    ) -> Routing:
        B, N, _ = x_BND.shape
        routing: Routing = self.decide(self._seen(x_BND.float()), groups, noise)
        K = self.moe.top_k
        experts_TK, gates_TK = (  # each token has the row of its chunk
            rows.view(B, -1, K).repeat_interleave(self.chunk, dim=1)[:, :N].flatten(0, 1)
            for rows in (routing.experts_TK, routing.gates_TK)
        )
        counts_GE = count(experts_TK, self.moe.n_experts, groups)
        return routing._replace(experts_TK=experts_TK, gates_TK=gates_TK, counts_GE=counts_GE)

    def _seen(self, x_BND: Tensor) -> Tensor:
        """Returns what the router sees before each chunk, (B, M, D)."""
        B, N, D = x_BND.shape
        whole_BMCD = x_BND[:, : (N - 1) // self.chunk * self.chunk].view(B, -1, self.chunk, D)
        before = whole_BMCD.mean(2) if self.moe.chunk_input == "mean" else whole_BMCD[:, :, -1]
        return torch.cat((self.w_start.expand(B, 1, D), before), dim=1)


class PositionRouter(nn.Module):
    """Sends chunk c of a sequence to the experts at places c K to c K + K - 1, with gates 1 / K.

    Nothing is learned. Expert (s + floor(s / E)) mod E is at place s. So each round of E places has
    all experts once, and the load is equal if E divides M K. Each round begins one expert later
    than the round before, so that other experts then work together.
    """

    def __init__(self, moe: PositionRouted, *settings: object) -> None:
        super().__init__()
        self.moe = moe

    def forward(
        self, x_BND: Tensor, groups: int = 1, noise: Noise = (), tokens_BN: Tensor | None = None
    ) -> Routing:
        B, N, _ = x_BND.shape
        E, K, C = self.moe.n_experts, self.moe.top_k, self.moe.chunk
        places_NK = torch.arange(N, device=x_BND.device)[:, None] // C * K
        places_NK = places_NK + torch.arange(K, device=x_BND.device)
        experts_TK = ((places_NK + places_NK // E) % E).repeat(B, 1)
        gates_TK = torch.full_like(experts_TK, 1 / K, dtype=torch.float32)
        zero = torch.zeros((), device=x_BND.device)
        return Routing(experts_TK, gates_TK, count(experts_TK, E, groups), zero, zero)


# A router takes the settings, d_model, the standard deviation of initial weights, a generator and
# the index of its layer.
ROUTERS: dict[str, Callable[..., nn.Module]] = {
    "token": Router,
    "chunk": ChunkRouter,
    "position": PositionRouter,
}
