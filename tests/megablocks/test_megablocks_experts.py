"""MegaBlocks' layer on our weights against the torch back end and the float64 loop."""

import pytest
import torch
from expert_cases import BF16, DEVICE, FP32

from expert_inputs import ROUTINGS, draw, value_and_gradients
from moelaws.model.megablocks.backend import megablocks_experts

# D, K, E, width; with rows of whole 16 bytes and without, one expert, and every expert chosen.
SIZES = [(16, 1, 8, 8), (16, 2, 8, 8), (12, 4, 6, 8), (9, 2, 5, 7), (16, 3, 3, 12), (8, 1, 1, 4)]


@FP32
@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize(("D", "K", "E", "width"), SIZES)
def test_output_and_all_gradients_agree_in_fp32(D, K, E, width, routing):
    inputs = draw(10, (D, E, K, width), routing, device=DEVICE)
    tensors = value_and_gradients("megablocks", inputs)
    loop = value_and_gradients("loop", inputs, torch.float64)
    for got, ours, want in zip(tensors, value_and_gradients("torch", inputs), loop, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(got, ours, rtol=1e-4, atol=1e-5)


@BF16
@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize(("D", "K", "E", "width"), [(16, 1, 8, 8), (20, 2, 6, 24), (16, 4, 8, 9)])
def test_output_and_all_gradients_agree_in_bf16_to_its_precision(D, K, E, width, routing):
    inputs = draw(12, (D, E, K, width), routing, device=DEVICE)
    tensors = value_and_gradients("megablocks", inputs, torch.bfloat16)
    loop = value_and_gradients("loop", inputs, torch.float64)
    ours = value_and_gradients("torch", inputs, torch.bfloat16)
    for got, beside, want in zip(tensors, ours, loop, strict=True):
        assert (got.double() - want).norm() / want.norm() < 0.02
        assert (got.double() - beside.double()).norm() / want.norm() < 0.02


@FP32
def test_views_are_read_where_they_lie():
    """Kernels go by addresses: every second token of a transposed tensor must not fool them."""
    x, *rest = draw(6, (16, 8, 2, 8), "random", device=DEVICE)
    wide = torch.zeros(16, 12, device=DEVICE)
    wide[:, ::2] = x.t()
    torch.testing.assert_close(
        megablocks_experts(wide.t()[::2], *rest), megablocks_experts(x, *rest)
    )


@FP32
def test_the_layer_draws_no_random_numbers():
    """Its own weights, which nobody uses, must not shift those of the run."""
    inputs = draw(3, (28, 7, 2, 8), "random", device=DEVICE)  # of a size that is not built yet
    before = torch.get_rng_state()
    megablocks_experts(*inputs)
    assert torch.equal(torch.get_rng_state(), before)


def test_rows_beyond_32_bit_offsets_count_as_lack_of_memory():
    """So that the trainer takes a smaller micro-batch."""
    T, K, D = 2**20, 2, 1024
    x = torch.zeros(1, D).expand(T, D)
    experts, gates = torch.zeros(1, K, dtype=torch.int64).expand(T, K), torch.ones(1, K)
    with pytest.raises(MemoryError, match=r"2097152 rows of width 1024.*fewer sequences"):
        megablocks_experts(
            x, experts, gates.expand(T, K), torch.zeros(1, D, 8), torch.zeros(1, 4, D)
        )
