"""The balance loss at its extremes; the noise of the router's inputs."""

import pytest
import torch

from moelaws.model.router import Router
from moelaws.spec.model import MoE


def router(E, K, **settings):
    moe = MoE(kind="moe", n_experts=E, top_k=K, d_expert=4, normalize_top_k=K > 1, **settings)
    return Router(moe, 8, 0.5, torch.Generator().manual_seed(0))


def test_balance_is_one_when_uniform_and_e_when_one_expert_gets_all():
    layer = router(8, 1)
    eye = torch.eye(8)
    with torch.no_grad():
        layer.weight.copy_(100 * eye)
    assert layer(eye).balance.item() == pytest.approx(1.0)
    assert layer(eye[:1].expand(8, 8)).balance.item() == pytest.approx(8.0)


def test_jitter_multiplies_the_routers_inputs_and_each_group_has_its_own():
    layer, x_TD = router(4, 2, jitter=0.2), torch.ones(4000, 8)

    def generators(*seeds):
        return [torch.Generator().manual_seed(s) for s in seeds]

    noise_TD = layer._jitter(x_TD, generators(1, 2))
    assert 0.8 <= noise_TD.min() < 0.81
    assert 1.19 < noise_TD.max() <= 1.2
    assert noise_TD.mean().item() == pytest.approx(1, abs=0.002)
    both = layer(x_TD, 2, generators(1, 2)).gates_TK
    second = layer(x_TD[2000:], 1, generators(2)).gates_TK
    assert torch.equal(both[2000:], second)  # whatever is computed beside it
    assert not torch.equal(both[:2000], second)
    # Without generators, as in evaluation, there is none.
    still = layer(x_TD).gates_TK
    assert (still == still[0]).all()
