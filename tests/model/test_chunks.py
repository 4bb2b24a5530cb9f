"""Routers of chunks: one decision for each, by what was before it or by its place."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from architectures import routed
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


@pytest.mark.parametrize("chunk_input", ["mean", "last"])
def test_a_chunk_goes_where_the_chunk_before_says(chunk_input):
    layer, x_BND = router("chunk", chunk_input=chunk_input), hidden()
    routing = layer(x_BND)
    for b in range(B):
        for n in range(N):
            start = n // C * C
            before = x_BND[b, start - C : start]
            seen = before.mean(0) if chunk_input == "mean" else before[-1:].mean(0)
            p_E = (layer.decide.weight @ (seen if start else layer.w_start[0])).softmax(0)
            gates, experts = p_E.topk(2)
            assert routing.experts_TK[b * N + n].tolist() == experts.tolist()
            torch.testing.assert_close(routing.gates_TK[b * N + n], gates / gates.sum())


def test_the_losses_are_those_of_the_decisions_and_counts_those_of_tokens():
    layer, x_BND = router("chunk"), hidden()
    routing = layer(x_BND, groups=3)
    assert routing.counts_GE.sum(1).tolist() == [N * 2] * 3
    before = torch.cat((layer.w_start.expand(B, 1, D), x_BND[:, :16].view(B, 2, C, D).mean(2)), 1)
    decided = layer.decide(before, groups=3)
    assert routing.balance == decided.balance
    assert routing.z == decided.z
    (gradient,) = torch.autograd.grad(routing.gates_TK[:, 0].sum(), layer.w_start)
    assert gradient.abs().sum() > 0  # the start is learned


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"route_by": "chunk"}, r"chunk\n  Field required"),
        ({"chunk": 4}, "chunk is set where route_by is chunk or position, and only there"),
        ({"route_by": "position", "chunk": 4, "chunk_input": "last"}, "where route_by is chunk, "),
        ({"route_by": "chnk"}, "token, chunk or position"),
        ({"route_by": "chunk", "chunk": 5}, "chunk = 5 must divide context = 24"),
        ({"route_by": "position", "chunk": 4, "load_balance": 0.1}, "load_balance must be 0"),
        ({"route_by": "position", "chunk": 4, "jitter": 0.1}, "jitter must be 0"),
        (
            {"route_by": "position", "chunk": 4, "normalize_top_k": False},
            "normalize_top_k must be true",
        ),
        ({"route_by": "chunk", "chunk": 4, "top_k": 1}, "teaches the router nothing"),
    ],
)
def test_routings_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        routed(**changes)
