"""Memory estimates against what a model really keeps, and batches that are taken in parts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.cost import (
    CPU,
    H100,
    Timing,
    activation_bytes,
    estimate,
    fitted_to,
)
from moelaws.model.transformer import Transformer
from moelaws.spec.model import DenseFFN, Model, MoE, Slices
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


DENSE = DenseFFN(kind="dense", d_ffn=256)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("ffn", "slices"),
    [
        (DENSE, None),
        (DenseFFN(kind="dense", d_ffn=256, mlp="gelu"), None),
        (MoE(kind="moe", n_experts=8, top_k=2, d_expert=64), None),
        (MoE(kind="moe", n_experts=32, top_k=16, d_expert=16), None),
        (MoE(kind="moe", n_experts=8, top_k=2, d_expert=64, mlp="gelu"), None),
        (
            MoE(
                kind="moe", n_experts=8, top_k=4, d_expert=32, n_shared=2,
                n_dense_layers=1, d_ffn=256,
            ),
            None,
        ),
        (
            {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 64, "route_by": "chunk",
             "chunk": 16},
            None,
        ),
        (DENSE, Slices(n_experts=2, d_expert=128, n_heads=1)),
        (DENSE, Slices(n_experts=8, d_expert=32, n_heads=1)),
        (DENSE, Slices(n_experts=2, d_expert=128, n_heads=1, positions="chunks")),
        (DENSE, Slices(n_experts=8, d_expert=32, n_heads=1, positions="chunks")),
    ],
)  # fmt: skip
def test_activations_are_estimated_from_above_within_a_factor_of_two(ffn, slices, precision):
    model = Model(
        n_layers=4, d_model=64, n_heads=2, n_kv=2, context=64, vocab_size=256, ffn=ffn,
        slices=slices, qk_norm=True,
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


def sized(d_model, experts, steps, groups=4):
    """A run's configuration, by what its time depends on."""
    run = config(groups)
    ffn = run.model.ffn.model_copy(update={"n_experts": experts, "d_expert": d_model})
    model = run.model.model_copy(update={"d_model": d_model, "ffn": ffn})
    return run.model_copy(update={"model": model, "steps": steps})


RUNS = [sized(d, E, steps) for d in (16, 48, 128) for E in (2, 16, 64) for steps in (500, 4000)]


def steps_alone(run, device):
    evaluated = run.evaluation.sequences / (3 * run.batch * run.steps)
    return (estimate(run, device).seconds - device.startup_seconds) / (1 + evaluated)


def measured(runs, device):
    return [Timing(run, steps_alone(run, device)) for run in runs]


def test_an_evaluation_takes_a_third_of_training_on_its_text():
    run = sized(48, 16, 500)
    evaluation = run.evaluation.model_copy(update={"sequences": 3 * 500 * run.batch})
    evaluated = run.model_copy(update={"evaluation": evaluation})
    spent = estimate(evaluated, CPU).seconds - CPU.startup_seconds
    assert spent == pytest.approx(2 * steps_alone(run, CPU))


def test_timings_of_a_machine_tell_its_speed_and_its_overheads():
    machine = replace(
        CPU, flops_per_second=2e10, seconds_per_layer_step=8e-3, seconds_per_expert_step=2e-4
    )
    learned = fitted_to(CPU, measured(RUNS, machine))
    larger = sized(256, 32, 20_000)
    assert estimate(larger, learned).seconds == pytest.approx(
        estimate(larger, machine).seconds, rel=0.1
    )


def test_one_timing_scales_the_whole_estimate_and_none_changes_nothing():
    slower = replace(
        CPU, flops_per_second=CPU.flops_per_second / 3,
        seconds_per_layer_step=3 * CPU.seconds_per_layer_step,
        seconds_per_expert_step=3 * CPU.seconds_per_expert_step,
    )  # fmt: skip
    learned = fitted_to(CPU, measured(RUNS[:1], slower))
    assert learned.flops_per_second == pytest.approx(slower.flops_per_second)
    assert learned.seconds_per_expert_step == pytest.approx(slower.seconds_per_expert_step)
    assert fitted_to(CPU, []) == CPU


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=len(RUNS)))
def test_no_timings_whatever_give_a_negative_time(seconds):
    device = fitted_to(CPU, [Timing(run, s) for run, s in zip(RUNS, seconds, strict=False)])
    assert all(0 < estimate(run, device).seconds < float("inf") for run in RUNS)
