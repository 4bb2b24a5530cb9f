"""MegaBlocks' whole layer, router and losses its own, is our layer on the same weights."""

from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from expert_cases import DEVICE, FP32, moe_of

from moelaws.model.backends import BACKENDS
from moelaws.model.experts import MoELayer
from moelaws.model.megablocks.backend import load

D, LAYERS = 12, 2


def theirs(ours, moe, balance, z):
    """MegaBlocks' layers with the weights of ours, and the settings that its losses go by."""
    load()
    settings = import_module("megablocks.layers.arguments").Arguments(
        hidden_size=D, ffn_hidden_size=moe.d_expert, num_layers=LAYERS,
        moe_num_experts=moe.n_experts, moe_top_k=moe.top_k,
        moe_normalize_expert_weights=1 if moe.normalize_top_k else None,
        moe_loss_weight=balance, moe_lbl_in_fp32=True,
        moe_zloss_weight=z, moe_zloss_in_fp32=True,
        mlp_type="glu", mlp_impl="grouped", activation_fn=F.silu,
        bias=False, return_bias=False, fp16=False, device=DEVICE,
    )  # fmt: skip
    layers = [import_module("megablocks").dMoE(settings) for _ in ours]
    with torch.no_grad():
        for layer, mine in zip(layers, ours, strict=True):
            layer.router.layer.weight.copy_(mine.router.weight)
            for weight, value in zip(weights_of(layer), weights_in_their_order(mine), strict=True):
                weight.copy_(value)
    return layers, settings


def weights_of(layer):
    return [layer.experts.mlp.w1, layer.experts.mlp.v1, layer.experts.mlp.w2]


def weights_in_their_order(layer, of=lambda weight: weight):
    """Gate, up and down, experts stacked, each row of width D."""
    gate_up, down = of(layer.routed_experts.w_gate_up), of(layer.routed_experts.w_down)
    gate, up = gate_up.chunk(2, dim=-1)
    return [w.reshape(-1, D) for w in (gate.transpose(1, 2), up.transpose(1, 2), down)]


def assert_close(got, want):
    """To fp32's rounding of the whole tensor."""
    assert got.shape == want.shape
    assert (got - want).norm() / want.norm() < 2e-6


@FP32
@pytest.mark.parametrize("top_k", [1, 2])
def test_dmoe_with_its_own_router_and_losses_is_our_layer(top_k):
    """Its balance loss is coefficient * mean over layers of ours; its z-loss is a vector, one entry
    a layer: the mean of the entries is coefficient * ours, their sum L times as much."""
    balance, z = 0.3, 0.2
    moe = moe_of(n_experts=8, top_k=top_k, d_expert=16)
    generator = torch.Generator().manual_seed(0)
    ours = [
        MoELayer(moe, D, 0.4, BACKENDS["megablocks"], generator).to(DEVICE) for _ in range(LAYERS)
    ]
    layers, settings = theirs(ours, moe, balance, z)
    x_TD = torch.randn(10, D, generator=generator).to(DEVICE)

    x = x_TD.clone().requires_grad_()
    h, routings = x, []
    for layer in ours:
        y, routing = layer(h, 1)
        h, routings = h + y, [*routings, routing]
    our_balance = torch.stack([r.balance for r in routings]).mean()
    our_z = torch.stack([r.z for r in routings])
    (h.square().sum() + balance * our_balance + z * our_z.mean()).backward()

    losses, router = import_module("megablocks.layers.moe"), "megablocks.layers.router"
    losses.clear_load_balancing_loss()
    import_module(router).clear_router_zloss()
    their_x = x_TD.clone().requires_grad_()
    their_h = their_x
    for layer in layers:
        their_h = their_h + layer(their_h)
    their_balance = losses.batched_load_balancing_loss(settings)
    their_z = import_module(router).batched_router_zloss(settings)
    (their_h.square().sum() + their_balance + their_z.mean()).backward()

    assert_close(their_h, h)
    assert_close(their_balance, balance * our_balance)
    assert_close(their_z, z * our_z)
    assert_close(their_x.grad, x.grad)
    for layer, mine in zip(layers, ours, strict=True):
        assert_close(layer.router.layer.weight.grad, mine.router.weight.grad)
        grads = weights_in_their_order(mine, of=lambda weight: weight.grad)
        for weight, want in zip(weights_of(layer), grads, strict=True):
            assert_close(weight.grad, want)
