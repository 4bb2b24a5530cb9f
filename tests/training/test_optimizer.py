"""Our AdamW against torch's own, and what the scale-free form means."""

import pytest
import torch
from torch import nn

from moelaws.spec.run import AdamW, Muon
from moelaws.training.optimizer import Optimizer


def parameters():
    generator = torch.Generator().manual_seed(0)
    shapes = [(6, 4), (4,), (3, 4, 8), (8,)]
    return [torch.randn(s, generator=generator).requires_grad_() for s in shapes]


def set_gradients(ps, step, scale=1.0):
    generator = torch.Generator().manual_seed(step)
    for p in ps:
        p.grad = scale * torch.randn(p.shape, generator=generator)


@pytest.mark.parametrize(("clip", "scale"), [(0.0, 1.0), (1.0, 1.0), (1.0, 0.01)])
def test_agrees_with_torch_adamw_and_clipping(clip, scale):
    mine, theirs = parameters(), parameters()
    settings = AdamW(lr=3e-2, weight_decay=0.2, clip=clip)
    leaves = ["w_in", "gain", "w_in", "gain"]
    named = ((f"{i}.{leaf}", p) for i, (leaf, p) in enumerate(zip(leaves, mine, strict=True)))
    optimizer = Optimizer(named, settings)
    reference = torch.optim.AdamW(
        [
            {"params": [p for p in theirs if p.ndim >= 2], "weight_decay": 0.2},
            {"params": [p for p in theirs if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=3e-2, betas=(0.9, 0.95), eps=1e-8,
    )  # fmt: skip
    for step in range(20):
        lr = 3e-2 * (1 - step / 40)
        set_gradients(mine, step, scale)
        set_gradients(theirs, step, scale)
        norm = optimizer.step(lr)
        if clip:
            torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_(theirs, clip))
        for group in reference.param_groups:
            group["lr"] = lr
        reference.step()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def shrinkage(settings, lr):
    """The factor that a step without gradient puts on a matrix, a gain and stacked biases."""
    ps = {"l.w_in": torch.ones(3, 3), "l.norm.gain": torch.ones(3), "l.b_in": torch.ones(2, 3)}
    optimizer = Optimizer([(n, p.requires_grad_()) for n, p in ps.items()], settings)
    for p in ps.values():
        p.grad = torch.zeros_like(p)
    optimizer.step(lr)
    return tuple(p.flatten()[0].item() for p in ps.values())


@pytest.mark.parametrize("peak", [1e-3, 1e-1])
@pytest.mark.parametrize("scale_free", [False, True])
def test_decay_scales_with_the_rate_or_its_share_of_the_peak_and_spares_gains_and_biases(
    peak, scale_free
):
    settings = AdamW(lr=peak, weight_decay=0.01, scale_free=scale_free)
    for rate in (peak, peak / 2):
        matrix, gain, bias = shrinkage(settings, rate)
        by = rate / peak if scale_free else rate
        assert matrix == pytest.approx(1 - 0.01 * by, abs=1e-6 if scale_free else 1e-7)
        assert gain == bias == 1


def test_muon_agrees_with_torchs_on_matrices_and_with_adamw_elsewhere():
    mine, theirs, adam = parameters(), parameters(), parameters()
    settings = Muon(kind="muon", lr=2e-2, weight_decay=0.1, clip=0)
    leaves = ["w_in", "gain", "w_gate_up", "embedding"]
    optimizer = Optimizer(zip(leaves, mine, strict=True), settings)
    other = Optimizer(zip(leaves, adam, strict=True), AdamW(lr=2e-2, weight_decay=0.1, clip=0))
    # Torch's takes matrices one by one and rounds them to bf16.
    experts = [nn.Parameter(expert.detach().clone()) for expert in theirs[2]]
    reference = torch.optim.Muon(
        [theirs[0], *experts], lr=2e-2, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    for step in range(10):
        for ps in (mine, theirs, adam):
            set_gradients(ps, step)
        for expert, gradient in zip(experts, theirs[2].grad, strict=True):
            expert.grad = gradient
        optimizer.step(2e-2)
        other.step(2e-2)
        reference.step()
    for a, b in zip([mine[0], *mine[2]], [theirs[0], *experts], strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-3)
    for a, b in ((mine[1], adam[1]), (mine[3], adam[3])):
        assert torch.equal(a, b)
    assert not torch.allclose(mine[0], adam[0], atol=1e-2)
