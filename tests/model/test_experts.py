"""The torch back end against a float64 loop over tokens, and which back end is taken."""

import pytest
import torch

from architectures import routed
from expert_inputs import ROUTINGS, draw, value_and_gradients
from moelaws.model import backends
from moelaws.spec.errors import UserError


@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize(
    ("D", "K", "E", "width"),
    [(12, 1, 8, 16), (12, 2, 8, 16), (10, 4, 6, 10), (9, 3, 3, 7), (12, 1, 1, 4)],
)
def test_torch_agrees_with_the_loop_in_output_and_all_gradients(D, K, E, width, routing, mlp):
    """Widths of all kinds: grouped matrix products want rows of whole 16 bytes, users do not."""
    inputs = draw(40, (D, E, K, width), routing, mlp)
    expected = value_and_gradients("loop", inputs, torch.float64, mlp)
    for got, want in zip(value_and_gradients("torch", inputs, mlp=mlp), expected, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mlp", ["swiglu", "gelu"])
@pytest.mark.parametrize("D", [16, 20])
def test_bf16_agrees_with_the_loop_to_its_precision(D, mlp):
    inputs = draw(64, (D, 8, 2, 24), "random", mlp)
    expected = value_and_gradients("loop", inputs, torch.float64, mlp)
    tensors = value_and_gradients("torch", inputs, torch.bfloat16, mlp)
    for got, want in zip(tensors, expected, strict=True):
        assert (got.double() - want).norm() / want.norm() < 0.02


@pytest.mark.parametrize(
    ("capability", "missing", "picked"),
    [((8, 0), "", "megablocks"), ((8, 0), "no such", "torch"), ((9, 0), "", "torch")],
)
def test_on_a_gpu_auto_takes_the_faster_one_that_can_be_used(
    monkeypatch, capability, missing, picked
):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(backends, "megablocks_obstacle", lambda *_: missing)
    backend, line = backends.choose_backend("auto", routed(), "cuda", "bf16")
    assert backend.name == picked
    assert "on cuda" in line
    assert ("not megablocks: no such" in line) == bool(missing)


def test_an_unusable_back_end_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(backends, "megablocks_obstacle", lambda *_: "no such")
    for name, message in (
        ("cuda", "'cuda' is unknown; there are auto, torch, megablocks"),
        ("megablocks", "back end megablocks cannot be used: no such"),
    ):
        with pytest.raises(UserError, match=message):
            backends.choose_backend(name, routed(), "cpu", "fp32")
