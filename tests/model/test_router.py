"""The noise of the router's inputs."""

import pytest
import torch

from moelaws.model.router import Router
from moelaws.spec.model import MoE


def test_jitter_multiplies_the_routers_inputs_and_each_group_has_its_own():
    moe = MoE(kind="moe", n_experts=4, top_k=2, d_expert=4, jitter=0.2)
    layer, x_TD = Router(moe, 8, 0.5, torch.Generator().manual_seed(0)), torch.ones(4000, 8)

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
