"""Routers of chunks: one decision for each, by what was before it or by its place."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moelaws.model.router import ROUTERS
from moelaws.spec.experts import routers

B, N, D, C = 3, 20, 8, 8  # the third chunk of a sequence is cut


def router(route_by, **changes):
    if route_by == "position":
        changes |= {"load_balance": 0, "router_z": 0}
    fields = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 4, "chunk": C}
    moe = routers()[route_by](**{**fields, "route_by": route_by, **changes})
    return ROUTERS[route_by](moe, D, 0.5, torch.Generator().manual_seed(0))


def hidden():
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(1))


def by_loop(layer, x_BND, groups):
    """Experts, gates, balance and z-loss with a graph in float64, chunk after chunk."""
    moe, E, chunks = layer.moe, layer.moe.n_experts, B * -(-N // C)
    weight_ED, start_D = layer.decide.weight.double(), layer.w_start[0].double()
    experts, gates, z = [], [], 0.0
    load_GE, p_GE = [[0] * E for _ in range(groups)], torch.zeros(groups, E, dtype=torch.float64)
    for b, x_ND in enumerate(x_BND.double()):
        for first in range(0, N, C):
            seen_D = start_D
            if first:
                before = [x_ND[n] for n in range(first - C, first)]
                seen_D = sum(before) / C if moe.chunk_input == "mean" else before[-1]
            exps = [(weight_ED[e] @ seen_D).exp() for e in range(E)]
            p_E = [exp / sum(exps) for exp in exps]
            z = z + sum(exps).log() ** 2 / chunks
            chosen = sorted(range(E), key=lambda e: -p_E[e].item())[: moe.top_k]
            divisor = sum(p_E[e] for e in chosen) if moe.normalize_top_k else 1.0
            for e in chosen:
                load_GE[b * groups // B][e] += 1
            p_GE[b * groups // B] = p_GE[b * groups // B] + torch.stack(p_E)
            for _ in range(first, min(first + C, N)):
                experts.append(chosen)
                gates.append(torch.stack([p_E[e] / divisor for e in chosen]))
    fraction_GE = torch.tensor(load_GE, dtype=torch.float64) * groups / (chunks * moe.top_k)
    balance = E * (fraction_GE * p_GE * groups / chunks).sum(1).mean()
    return experts, torch.stack(gates), balance, z


@pytest.mark.parametrize("chunk_input", ["mean", "last"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_chunk_goes_where_the_chunk_before_says(chunk_input, normalize, groups):
    """Decisions, gates, losses and all gradients are those of the loop."""
    layer = router("chunk", chunk_input=chunk_input, normalize_top_k=normalize)
    x_BND = hidden().requires_grad_()
    routing = layer(x_BND, groups)
    experts, gates_TK, balance, z = by_loop(layer, x_BND, groups)
    assert routing.experts_TK.tolist() == experts
    of_groups = torch.tensor(experts).view(groups, -1)  # the load is that of tokens
    assert routing.counts_GE.tolist() == [row.bincount(minlength=4).tolist() for row in of_groups]
    torch.testing.assert_close(routing.gates_TK.double(), gates_TK, rtol=1e-5, atol=1e-6)
    c_TK = torch.linspace(-1, 1, gates_TK.numel()).view(gates_TK.shape)
    leaves = [x_BND, layer.decide.weight, layer.w_start]  # the start is learned, too
    for mine, theirs in (
        ((routing.gates_TK * c_TK).sum(), (gates_TK * c_TK).sum()),
        (routing.balance, balance),
        (routing.z, z),
    ):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=1e-5)
        got, want = (
            torch.autograd.grad(loss, leaves, retain_graph=True) for loss in (mine, theirs)
        )
        for a, b in zip(got, want, strict=True):
            assert b.abs().sum() > 0
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_positions_share_the_load_without_learning():
    layer = router("position")
    routing = layer(hidden()[:, :16])
    assert routing.experts_TK[:16].tolist() == [[0, 1]] * 8 + [[2, 3]] * 8
    assert routing.counts_GE.tolist() == [[B * 8] * 4]
    assert (routing.gates_TK == 0.5).all()
    assert not list(layer.parameters())
    later = layer(hidden()).experts_TK[2 * C : N]
    assert later.tolist() == [[1, 2]] * 4  # the next round: in other company


@given(E=st.integers(1, 12), data=st.data())
def test_chunks_by_place_give_each_token_different_experts_and_all_the_same_load(E, data):
    K = data.draw(st.integers(1, E))
    layer = router("position", n_experts=E, top_k=K, chunk=1)
    experts_TK = layer(torch.zeros(1, 2 * E, D)).experts_TK
    assert all(len(set(row)) == K for row in experts_TK.tolist())
    assert experts_TK.flatten().bincount(minlength=E).tolist() == [2 * K] * E
