"""Gates, the two auxiliary losses and their groups."""

import pytest
import torch
import torch.nn.functional as F

from moelaws.model.router import Router, count
from moelaws.spec.model import MoE


def router(E, K, normalize=False, std=0.5):
    moe = MoE(kind="moe", n_experts=E, top_k=K, d_expert=4, normalize_top_k=normalize)
    return Router(moe, 8, std, torch.Generator().manual_seed(0))


def test_balance_loss_is_one_when_uniform_and_e_when_one_expert_gets_all():
    layer = router(8, 1)
    eye = torch.eye(8)
    with torch.no_grad():
        layer.weight.copy_(100 * eye)
    assert layer(eye).balance.item() == pytest.approx(1.0)
    assert layer(eye[:1].expand(8, 8)).balance.item() == pytest.approx(8.0)


def test_balance_is_measured_over_each_group_by_itself():
    """Halves that collapse on different experts are balanced together, collapsed apart."""
    layer = router(2, 1)
    with torch.no_grad():
        layer.weight.copy_(100 * torch.eye(2, 8))
    x_TD = torch.eye(8)[[0, 0, 0, 0, 1, 1, 1, 1]]
    assert layer(x_TD, groups=1).balance.item() == pytest.approx(1.0)
    assert layer(x_TD, groups=2).balance.item() == pytest.approx(2.0)
    assert layer(x_TD, groups=2).counts_GE.tolist() == [[4, 0], [0, 4]]


def test_balance_gradient_lowers_the_overloaded_expert():
    layer = router(4, 1, std=0.01)
    x_TD = torch.ones(64, 8)
    routing = layer(x_TD)
    favourite = int(routing.experts_TK[0, 0])
    (gradient,) = torch.autograd.grad(routing.balance, layer.weight)
    assert (gradient[favourite] > 0).all()


def test_counts_are_the_assignments():
    experts_TK = torch.tensor([[0, 2], [0, 1], [3, 0], [2, 3]])
    assert count(experts_TK, 4, 2).tolist() == [[2, 1, 1, 0], [1, 0, 1, 2]]
    assert count(experts_TK, 4, 1).tolist() == [[3, 1, 2, 2]]


@pytest.mark.parametrize("normalize", [True, False])
def test_gradients_of_gates_and_losses_agree_with_a_plain_softmax(normalize):
    layer = router(6, 2, normalize)
    x_TD = torch.randn(40, 8)
    routing = layer(x_TD, 2)
    weight = layer.weight.detach().double().requires_grad_()
    logits_TE = x_TD.double() @ weight.t()
    p_TE = F.softmax(logits_TE, dim=-1)
    gates_TK, experts_TK = p_TE.topk(2)
    assert torch.equal(routing.experts_TK, experts_TK)
    if normalize:
        gates_TK = gates_TK / gates_TK.sum(-1, keepdim=True)
    fraction_GE = F.one_hot(routing.experts_TK, 6).sum(1).view(2, 20, 6).double().mean(1) / 2
    balance = 6 * (fraction_GE * p_TE.view(2, 20, 6).mean(1)).sum(1).mean()
    z = torch.logsumexp(logits_TE, -1).square().mean()
    c_TK = torch.linspace(-1, 1, 80).view(40, 2)
    for mine, theirs in (
        ((routing.gates_TK * c_TK).sum(), (gates_TK * c_TK).sum()),
        (routing.balance, balance),
        (routing.z, z),
    ):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5)
        (a,) = torch.autograd.grad(mine, layer.weight, retain_graph=True)
        (b,) = torch.autograd.grad(theirs, weight, retain_graph=True)
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-6)


def test_jitter_multiplies_the_routers_inputs_and_each_group_has_its_own():
    moe = MoE(kind="moe", n_experts=4, top_k=2, d_expert=8, jitter=0.2)
    router = Router(moe, 8, 0.5, torch.Generator().manual_seed(0))
    x_TD = torch.ones(4000, 8)

    def generators(*seeds):
        return [torch.Generator().manual_seed(s) for s in seeds]

    noise_TD = router._jitter(x_TD, generators(1, 2))
    assert 0.8 <= noise_TD.min() < 0.81
    assert 1.19 < noise_TD.max() <= 1.2
    assert noise_TD.mean().item() == pytest.approx(1, abs=0.002)
    both = router(x_TD, 2, generators(1, 2)).gates_TK
    second = router(x_TD[2000:], 1, generators(2)).gates_TK
    assert torch.equal(both[2000:], second)  # whatever is computed beside it
    assert not torch.equal(both[:2000], second)
    # Without generators, as in evaluation, there is none.
    still = router(x_TD).gates_TK
    assert (still == still[0]).all()
