"""The torch back end against the float64 loop; no token is dropped; degenerate experts."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from expert_inputs import ROUTINGS, draw, value_and_gradients
from moelaws.model.backends import BACKENDS, choose_backend, preferred
from moelaws.model.experts import MoELayer, RoutedExperts
from moelaws.model.mlp import MLP
from moelaws.model.router import Routing, count
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model, MoE


@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize(
    ("D", "K", "E", "width"),
    [(12, 1, 8, 16), (12, 2, 8, 16), (10, 4, 6, 10), (9, 3, 3, 7), (12, 1, 1, 4)],
)
def test_torch_agrees_with_the_loop_in_output_and_all_gradients(D, K, E, width, routing, mlp):
    """Widths of all kinds: grouped matrix products want rows of whole 16 bytes, users do not."""
    inputs = draw(40, (D, E, K, width), routing, mlp)
    expected = value_and_gradients("reference", inputs, torch.float64, mlp)
    for got, want in zip(value_and_gradients("torch", inputs, mlp=mlp), expected, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
@pytest.mark.parametrize("D", [16, 20])
def test_bf16_agrees_with_the_loop_to_its_precision(D, mlp):
    inputs = draw(64, (D, 8, 2, 24), "random", mlp)
    expected = value_and_gradients("reference", inputs, torch.float64, mlp)
    tensors = value_and_gradients("torch", inputs, torch.bfloat16, mlp)
    for got, want in zip(tensors, expected, strict=True):
        assert (got.double() - want).norm() / want.norm() < 0.02


def test_no_token_is_dropped_when_all_choose_one_expert():
    """Expert 0 scales its input's share by a known factor: each of 500 tokens must show it."""
    T, D, E = 500, 8, 16
    w_gate_up, w_down = torch.zeros(E, D, 2 * D), torch.zeros(E, D, D)
    w_gate_up[0, :, :D] = 40 * torch.eye(D)  # silu(40 x) = 40 x for x of order one
    w_gate_up[0, :, D:] = torch.eye(D)
    w_down[0] = torch.eye(D)
    x_TD = 1 + torch.rand(T, D)
    y_TD = BACKENDS["torch"].functions["swiglu"](
        x_TD, torch.zeros(T, 1, dtype=torch.int64), torch.ones(T, 1), w_gate_up, w_down
    )
    torch.testing.assert_close(y_TD, 40 * x_TD**2)


def test_every_expert_on_every_token_is_a_dense_layer_of_the_summed_width():
    """S = 0 (E = k) with gates of 1 is one SwiGLU of E times the width."""
    E, D, width, T = 4, 8, 12, 30
    experts = RoutedExperts(
        MoE(kind="moe", n_experts=E, top_k=E, d_expert=width),
        D, 0.3, BACKENDS["torch"], torch.Generator().manual_seed(0),
    )  # fmt: skip
    gate, up = experts.w_gate_up.detach().split(width, dim=2)
    dense = MLP("swiglu", D, E * width, 0.3, torch.Generator())
    with torch.no_grad():
        stacked = [w.transpose(1, 2).reshape(E * width, D) for w in (gate, up)]
        dense.w_gate_up.copy_(torch.cat(stacked))
        dense.w_down.copy_(experts.w_down.reshape(E * width, D).t())
    x_TD = torch.randn(T, D)
    chosen_TK = torch.stack([torch.randperm(E) for _ in range(T)])
    zero = torch.zeros(())
    routing = Routing(chosen_TK, torch.ones(T, E), count(chosen_TK, E, 1), zero, zero)
    torch.testing.assert_close(experts(x_TD, routing), dense(x_TD), rtol=1e-4, atol=1e-5)


def test_shared_experts_are_added_to_every_token():
    moe = MoE(kind="moe", n_experts=4, top_k=1, d_expert=8, normalize_top_k=False, n_shared=2)
    layer = MoELayer(moe, 8, 0.3, BACKENDS["torch"], torch.Generator().manual_seed(1))
    x_TD = torch.randn(20, 8)
    y_TD, routing = layer(x_TD, 1)
    gate, up = F.linear(x_TD, layer.shared_experts.w_gate_up).chunk(2, dim=-1)
    each = (F.silu(gate) * up).view(20, 2, 8)  # two experts of width 8
    down = layer.shared_experts.w_down.view(8, 2, 8)
    shared = sum(each[:, i] @ down[:, i].t() for i in range(2))
    torch.testing.assert_close(y_TD, layer.routed_experts(x_TD, routing) + shared)


ROUTED = MoE(kind="moe", n_experts=2, top_k=1, d_expert=8, normalize_top_k=False)
MODEL = Model(n_layers=1, d_model=8, n_heads=1, n_kv=1, context=8, vocab_size=8, ffn=ROUTED)


@pytest.mark.parametrize(("missing", "picked"), [("", "megablocks"), ("no such", "torch")])
def test_on_a_gpu_auto_prefers_megablocks_and_says_why_not(monkeypatch, missing, picked):
    """Which of them a GPU finds usable is decided here; the choice among them is not."""
    for name, obstacle in (("megablocks", missing), ("torch", "")):
        changed = replace(BACKENDS[name], obstacle=lambda *_, o=obstacle: o)
        monkeypatch.setitem(BACKENDS, name, changed)
    backend, line = choose_backend("auto", MODEL, "cuda", "bf16")
    assert backend.name == picked
    assert "on cuda" in line
    assert ("not megablocks: no such" in line) == bool(missing)


@pytest.mark.parametrize(("capability", "first"), [((8, 0), "megablocks"), ((9, 0), "torch")])
def test_auto_begins_with_the_back_end_that_was_faster_on_such_a_gpu(
    monkeypatch, capability, first
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert preferred("cuda")[0] == first


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("cuda", "cpu", "'cuda' is unknown; there are auto, torch, megablocks, reference"),
        ("reference", "cuda", "use --device cpu"),
    ],
)
def test_an_unusable_back_end_says_what_is_missing(name, device, message):
    with pytest.raises(UserError, match=message):
        choose_backend(name, MODEL, device, "fp32")
