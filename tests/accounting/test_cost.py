"""Memory estimates against what a model really keeps, and batches that are taken in parts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.cost import CPU, H100, activation_bytes, estimate
from moelaws.model.transformer import Transformer
from moelaws.spec.model import DenseFFN, Model, MoE
from moelaws.spec.run import RunConfig


def kept_bytes(model, precision):
    """Bytes a token of what autograd saves: the slope over the number of sequences."""

    def saved(sequences):
        built = Transformer(model, 0, precision=precision)
        storages = {}

        def keep(tensor):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage  # held, so that no address comes twice
            return tensor

        tokens = torch.randint(model.vocab_size, (sequences, model.context + 1))
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            losses = built.losses(tokens)
        del losses
        return sum(storage.nbytes() for storage in storages.values())

    return (saved(4) - saved(2)) / (2 * model.context)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "ffn",
    [
        DenseFFN(kind="dense", d_ffn=256),
        DenseFFN(kind="dense", d_ffn=256, mlp="gelu"),
        MoE(kind="moe", n_experts=8, top_k=2, d_expert=64),
        MoE(kind="moe", n_experts=32, top_k=16, d_expert=16),
        MoE(kind="moe", n_experts=8, top_k=2, d_expert=64, mlp="gelu"),
        MoE(kind="moe", n_experts=8, top_k=4, d_expert=32, n_shared=2, n_dense_layers=1, d_ffn=256),
    ],
)
def test_activations_are_estimated_from_above_within_a_factor_of_two(ffn, precision):
    model = Model(
        n_layers=3, d_model=64, n_heads=2, n_kv=2, context=64, vocab_size=256, ffn=ffn,
        qk_norm=True,
    )  # fmt: skip
    kept = kept_bytes(model, precision)
    assert kept < activation_bytes(model, precision) < 2 * kept


def config(groups, group=2):
    return RunConfig.model_validate(
        {
            "model": {
                "n_layers": 2, "d_model": 32, "n_heads": 2, "n_kv": 2, "context": 64,
                "vocab_size": 300,
                "ffn": {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 32},
            },
            "corpus": {"source": {"digest": "0" * 64}, "vocab_size": 300},
            "steps": 10, "batch": groups * group, "balance_group": group,
            "optimizer": {"lr": 3e-3},
        }
    )  # fmt: skip


@given(groups=st.integers(1, 40), room=st.integers(0, 50))
def test_a_batch_is_taken_in_the_largest_halving_that_fits(groups, room):
    """``room``: the balance groups that the device's memory holds beside the weights."""
    one, two = (estimate(config(n), H100).device_bytes for n in (1, 2))
    group, weights = two - one, 2 * one - two
    device = replace(H100, own_memory=weights + (room + 0.5) * group)
    cost = estimate(config(groups), device)
    part = round((cost.device_bytes - weights) / group)
    halvings = {-(-groups // 2**n) for n in range(10)}
    assert part in halvings
    assert part == max((n for n in halvings if n <= room), default=1)
    # More parts take longer: each has the overhead of its own passes.
    assert cost.seconds >= estimate(config(groups), H100).seconds


def test_a_dense_model_has_no_balance_groups():
    """Its micro-batches go down to one sequence."""
    routed = config(groups=1, group=64)
    ffn = DenseFFN(kind="dense", d_ffn=64)
    dense = routed.model_copy(update={"model": routed.model.model_copy(update={"ffn": ffn})})
    device = replace(H100, own_memory=1.0)  # nothing fits
    one = dense.model_copy(update={"batch": 1, "balance_group": 1})
    assert estimate(dense, device).device_bytes == estimate(one, device).device_bytes
    assert estimate(routed, device).device_bytes == estimate(routed, H100).device_bytes


def test_memory_of_the_host_takes_whole_batches():
    small, large = (estimate(config(groups), CPU) for groups in (1, 100))
    assert large.host_bytes > small.host_bytes
    assert large.device_bytes == 0
