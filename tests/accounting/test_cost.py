"""Memory, time and devices of a run by estimate, against what a model really keeps."""

import statistics
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
    device_of,
    estimate,
    fitted_to,
    placed,
    state_bytes,
)
from moelaws.accounting.parameters import count_parameters
from moelaws.model.transformer import Transformer
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.model import DenseFFN, Model, Slices
from moelaws.spec.project import Project
from random_corpus import VOCABULARY, run_of


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
EXPERTS = {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 64}


@pytest.mark.parametrize(
    ("precision", "ffn", "slices"),
    [
        ("fp32", DENSE, None),
        ("fp32", EXPERTS, None),
        ("bf16", EXPERTS | {"mlp": "gelu"}, None),
        ("bf16", EXPERTS | {"top_k": 4, "n_shared": 2, "n_dense_layers": 1, "d_ffn": 256}, None),
        ("fp32", EXPERTS | {"route_by": "chunk", "chunk": 16}, None),
        ("fp32", DENSE, Slices(n_experts=2, d_expert=128, n_heads=1)),
        ("bf16", DENSE, Slices(n_experts=8, d_expert=32, n_heads=1, positions="chunks")),
    ],
)
def test_activations_are_estimated_from_above_within_a_factor_of_two(precision, ffn, slices):
    model = Model(
        n_layers=4, d_model=64, n_heads=2, n_kv=2, context=64, vocab_size=256, ffn=ffn,
        slices=slices, qk_norm=True,
    )  # fmt: skip
    kept = kept_bytes(model, precision)
    assert kept < activation_bytes(model, precision) < 2 * kept


def text(vocabulary):
    return Corpus(source=Text(digest="0" * 64), vocab_size=vocabulary)


def config(groups):
    return run_of(text(VOCABULARY), steps=10, batch=2 * groups, balance_group=2)


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


def of_first_sweep():
    """The runs of a sweep of small mixtures: 42 of 3e14 FLOPs each, and 22 of 1e15."""

    def run(batch, experts, layers, width, steps):
        ffn = {"kind": "moe", "n_experts": experts, "top_k": 2, "d_expert": 2 * width}
        model = {
            "n_layers": layers, "d_model": width, "n_heads": width // 32, "n_kv": width // 32,
            "context": 512, "vocab_size": 4096, "tied_embeddings": True, "ffn": ffn,
        }  # fmt: skip
        others = {"precision": "bf16", "evaluation": {"sequences": 4096}}
        return run_of(text(4096), model, steps=steps, batch=batch, balance_group=8, **others)

    small = [(3, 64, 6209), (3, 96, 3599), (4, 128, 1940), (4, 192, 1035), (4, 256, 647)]
    large = [(3, 96, 7199), (4, 128, 3881), (4, 192, 2070), (4, 256, 1294)]
    every = (2, 4, 8, 16, 32, 64)
    runs = [run(24, E, *size) for E in every for size in small]
    runs += [run(24, E, *small[2]) for E in (2, 8, 64) for _ in range(4)]
    return runs + [run(40, E, *x) for E in every for x in large if E != 32 or x[1] > 128]


def test_runs_side_by_side_take_what_a_sweep_of_small_ones_took():
    """Eight at a time, under MPS, 64 runs took an H200 578 seconds in three calls."""
    runs = of_first_sweep()
    assert len(runs) == 64
    assert sum(estimate(run, H100).flops for run in runs) == pytest.approx(3.46e16, rel=0.01)

    def spent(number):
        return sum(estimate(x, replace(H100, runs_at_once=number)).device_seconds for x in runs)

    assert spent(8) == pytest.approx(578, rel=0.1)
    assert spent("auto") == spent(8)
    assert spent(1) > 2 * spent(8)


@pytest.mark.parametrize(("gigabytes", "number"), [(1, 1), (4, 2), (8, 5), (80, 8)])
def test_auto_takes_as_many_as_the_memory_holds(gigabytes, number):
    device = replace(H100, runs_at_once="auto", own_memory=gigabytes * 1e9)
    assert estimate(config(groups=1), device).runs_at_once == number


def sized(d_model, experts, steps):
    """A run's configuration, by what its time depends on."""
    ffn = {"kind": "moe", "n_experts": experts, "top_k": 2, "d_expert": d_model}
    model = {"d_model": d_model, "ffn": ffn}
    return run_of(text(VOCABULARY), model, steps=steps, batch=8, balance_group=2)


def steps_alone(run, device):
    evaluated = run.evaluation.sequences / (3 * run.batch * run.steps)
    return (estimate(run, device).seconds - device.startup_seconds) / (1 + evaluated)


@given(st.lists(st.floats(0.1, 1000), max_size=8))
def test_timings_scale_the_whole_estimate_by_their_median(factors):
    sizes = [(d, E, steps) for d in (16, 128) for E in (2, 64) for steps in (500, 4000)]
    runs = [sized(*size) for size in sizes]
    timings = [Timing(x, f * steps_alone(x, CPU)) for x, f in zip(runs, factors, strict=False)]
    device = fitted_to(CPU, timings)
    for run in runs:
        expected = steps_alone(run, CPU) * (statistics.median(factors) if factors else 1)
        assert steps_alone(run, device) == pytest.approx(expected)


def test_the_projects_mfu_scales_the_speed_of_a_gpu_alone():
    slow = Project(mfu=0.07, gpu_memory=40)
    assert device_of("cuda", slow).flops_per_second == pytest.approx(H100.flops_per_second / 5)
    assert device_of("cuda", slow).own_memory == 4e10
    assert device_of("cpu", slow) == CPU


def large(experts=32, groups=64, precision="bf16"):
    ffn = {"kind": "moe", "n_experts": experts, "top_k": 2, "d_expert": 4096}
    model = {
        "n_layers": 16, "d_model": 2048, "n_heads": 16, "n_kv": 4, "context": 2048,
        "vocab_size": 32000, "ffn": ffn,
    }  # fmt: skip
    settings = {"batch": groups, "balance_group": 1, "precision": precision}
    return run_of(text(32000), model, steps=1000, **settings)


@given(st.sampled_from([4, 6, 32, 150]), st.sampled_from([1, 3, 8, 64, 1024]), st.floats(1e9, 1e12))
def test_a_run_takes_the_fewest_devices_that_hold_it(experts, groups, memory):
    run, device = large(experts, groups), replace(H100, own_memory=memory)
    cost = placed(run, device)
    assert 1 <= cost.devices <= groups
    tried = [n for n in range(1, groups + 1) if n.bit_count() == 1 or experts % n == 0]
    tried.append(groups)
    needs = {n: estimate(run, device, n).device_bytes for n in tried}
    assert cost == estimate(run, device, cost.devices)
    if cost.device_bytes > memory:
        assert cost.device_bytes == min(needs.values())
    elif cost.devices == groups and groups.bit_count() > 1 and experts % groups:
        assert all(needs[n] > memory for n in tried if n < groups)
    elif cost.devices.bit_count() == 1:
        assert all(needs[n] > memory for n in tried if n < cost.devices and n.bit_count() == 1)
    else:
        assert all(needs[n] > memory for n in tried if n < cost.devices or n.bit_count() == 1)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_devices_share_a_model_and_the_work(precision):
    run = large(precision=precision)
    alone, eight = estimate(run, H100), estimate(run, H100, 8)
    count = count_parameters(run.model)
    assert state_bytes(run) == (16 if precision == "fp32" else 18) * count.total
    assert 16 * count.total / 8 < state_bytes(run, 8) < state_bytes(run) / 4
    assert eight.flops == alone.flops
    assert eight.seconds < alone.seconds
    assert eight.device_seconds == 8 * eight.seconds


def test_experts_that_are_dealt_out_are_not_gathered():
    """Of 6 experts at most 2 are on each of 4 devices; on 8 each layer gathers all six."""
    run = large(experts=6)
    of_one = count_parameters(run.model).routed_experts / 6
    assert state_bytes(run, 4) > 16 * 2 * of_one
    assert state_bytes(run, 8) - 16 * count_parameters(run.model).total / 8 > 12 * 6 * of_one / 16
