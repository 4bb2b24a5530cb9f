"""Scores, the bias for the selection and the capacity, against a loop over tokens in float64."""

import math

import pytest
import torch
import torch.nn.functional as F

from architectures import routed
from moelaws.model.backends import BACKENDS
from moelaws.model.experts import MoELayer
from moelaws.model.transformer import Transformer
from moelaws.spec.model import MoE

B, N, D, E, K = 3, 10, 8, 5, 2


def layer_of(**settings):
    """A layer whose biases, where it has any, decide in part."""
    moe = MoE(kind="moe", n_experts=E, top_k=K, d_expert=6, n_shared=2, **settings)
    layer = MoELayer(moe, D, 0.5, BACKENDS["torch"], torch.Generator().manual_seed(0))
    layer.capacity = moe.capacity(N)
    if moe.balance == "bias":
        layer.router.bias.copy_(torch.tensor([0.3, -0.2, 0.1, 0.0, -0.4]))
    return layer


def by_loop(layer, x_BND, groups):
    """Output, balance and z-loss with a graph in float64, the load and the dropped assignments."""
    moe, weights = layer.settings, {n: p.double() for n, p in layer.named_parameters()}
    bias_E = [0.0] * E if layer.router.bias is None else layer.router.bias.tolist()
    rows, z, dropped = [], 0.0, 0
    load_GE, p_GE = [[0] * E for _ in range(groups)], torch.zeros(groups, E, dtype=torch.float64)
    for b, x_ND in enumerate(x_BND.double()):
        taken = [0] * E
        group = b * groups // B
        for x_D in x_ND:
            logits = [weights["router.weight"][e] @ x_D for e in range(E)]
            exps = [logit.exp() for logit in logits]
            if moe.gate == "sigmoid":
                scores = [1 / (1 + (-logit).exp()) for logit in logits]
            else:
                scores = [exp / sum(exps) for exp in exps]
            p_GE[group] = p_GE[group] + torch.stack(scores) / sum(scores)
            z = z + sum(exps).log() ** 2 / (B * N)
            chosen = sorted(range(E), key=lambda e: -(scores[e].item() + bias_E[e]))[:K]
            divisor = sum(scores[e] for e in chosen) if moe.normalize_top_k else 1.0
            gate, up = (weights["shared_experts.w_gate_up"] @ x_D).chunk(2)
            y_D = weights["shared_experts.w_down"] @ (F.silu(gate) * up)
            for e in chosen:
                load_GE[group][e] += 1
                taken[e] += 1
                if moe.capacity_factor and taken[e] > math.ceil(moe.capacity_factor * N * K / E):
                    dropped += 1
                    continue
                gate, up = (x_D @ weights["routed_experts.w_gate_up"][e]).chunk(2)
                expert_D = (F.silu(gate) * up) @ weights["routed_experts.w_down"][e]
                y_D = y_D + moe.route_scale * scores[e] / divisor * expert_D
            rows.append(y_D)
    fraction_GE = torch.tensor(load_GE, dtype=torch.float64) * groups / (B * N * K)
    mean_GE = p_GE * groups / (B * N)
    return torch.stack(rows), (fraction_GE * mean_GE).sum(1).mean() * E, z, load_GE, dropped


@pytest.mark.parametrize("capacity_factor", [None, 0.75])
@pytest.mark.parametrize("balance", ["loss", "bias", "none"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("gate", "scale"), [("softmax", 1.0), ("sigmoid", 1.0), ("sigmoid", 2.5)])
def test_outputs_losses_counts_and_all_gradients_are_the_loops(
    gate, scale, normalize, balance, capacity_factor
):
    layer = layer_of(
        gate=gate, route_scale=scale, normalize_top_k=normalize, balance=balance,
        capacity_factor=capacity_factor,
    )  # fmt: skip
    x_BND = torch.randn(B, N, D, generator=torch.Generator().manual_seed(1)).requires_grad_()
    y_TD, routing = layer(x_BND, B)
    expected_TD, balance_loss, z, load_GE, dropped = by_loop(layer, x_BND, B)
    assert routing.counts_GE.tolist() == load_GE
    assert routing.dropped == (dropped if capacity_factor else None)
    assert dropped >= (B * 5 if capacity_factor == 0.75 else 0)  # 5 experts take 3 of 20
    leaves = [x_BND, *layer.parameters()]
    c_TD = torch.linspace(-1, 1, y_TD.numel()).view(y_TD.shape)
    for mine, theirs in (
        ((y_TD * c_TD).sum(), (expected_TD * c_TD).sum()),
        (routing.balance, balance_loss),
        (routing.z, z),
    ):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)
        got, want = (
            torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)
            for loss in (mine, theirs)
        )
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(y_TD.double(), expected_TD, rtol=1e-4, atol=1e-5)


def test_the_bias_moves_as_in_the_papers_algorithm():
    """Wang et al., 2024, Algorithm 1: c_i is counted, e_i = mean(c) - c_i, b_i += u sign(e_i)."""
    u = 0.001
    model = Transformer(routed(n_experts=4, balance="bias", bias_rate=u), 0)
    model.move_biases(torch.tensor([[9, 3, 4, 0], [4, 4, 4, 4], [8, 8, 0, 0], [1, 5, 5, 5]]))
    model.move_biases(torch.tensor([[9, 3, 4, 0], [5, 3, 5, 3], [8, 8, 0, 0], [2, 5, 4, 5]]))
    moves = [[-2, 2, 0, 2], [-1, 1, -1, 1], [-2, -2, 2, 2], [2, -2, -1, -2]]
    assert torch.equal(torch.stack(list(model.biases().values())), u * torch.tensor(moves))


@pytest.mark.parametrize(("factor", "capacity"), [(1.0, 20), (1.1, 22), (1.25, 25), (0.501, 11)])
def test_the_capacity_is_rounded_up_and_not_by_an_error_of_rounding(factor, capacity):
    moe = MoE(kind="moe", n_experts=16, top_k=2, d_expert=4, capacity_factor=factor)
    assert moe.capacity(160) == capacity
