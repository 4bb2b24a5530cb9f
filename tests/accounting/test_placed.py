"""How many devices a run takes, by estimate of its memory."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.cost import CPU, GPUS, H100, estimate, placed, state_bytes
from moelaws.accounting.parameters import count_parameters
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.spec.base import parse
from moelaws.spec.corpus import Text
from moelaws.spec.project import load_study, study_names
from moelaws.spec.run import RunConfig
from repository import REPOSITORY

TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.05, seed=0)


def config(experts=32, groups=64, precision="bf16"):
    ffn = {"kind": "moe", "n_experts": experts, "top_k": 2, "d_expert": 4096}
    data = {
        "model": {
            "n_layers": 16, "d_model": 2048, "n_heads": 16, "n_kv": 4, "context": 2048,
            "vocab_size": 32000, "ffn": ffn,
        },
        "corpus": {"source": {"digest": "0" * 64}, "vocab_size": 32000},
        "steps": 1000, "batch": groups, "balance_group": 1, "optimizer": {"lr": 1e-3},
        "evaluation": {"sequences": 64}, "precision": precision,
    }  # fmt: skip
    return parse(RunConfig, data, "test")


@given(st.sampled_from([4, 6, 32, 150]), st.sampled_from([1, 3, 8, 64, 1024]), st.floats(1e9, 1e12))
def test_a_run_takes_the_fewest_devices_that_hold_it(experts, groups, memory):
    run, device = config(experts, groups), replace(H100, own_memory=memory)
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


def test_a_run_that_nothing_less_holds_takes_all_devices():
    """Of 7 no number but 4 has equally many of 64 experts each, and 7 hold more."""
    run = config(experts=64, groups=7)
    needs = {n: estimate(run, H100, n).device_bytes for n in (4, 7)}
    assert needs[7] < needs[4]
    assert placed(run, replace(H100, own_memory=needs[7])).devices == 7
    assert placed(run, replace(H100, own_memory=needs[4] / 10), most=6).devices == 6
    assert placed(run, replace(H100, own_memory=needs[4])).devices == 4


def test_what_is_asked_for_is_taken_as_far_as_there_are_balance_groups():
    assert placed(config(groups=6), H100, 4).devices == 4
    assert placed(config(groups=6), H100, 16).devices == 6
    assert placed(config(), CPU).devices == 1
    assert placed(config(), CPU, 2).devices == 2


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_devices_share_a_model_and_the_work(precision):
    run = config(precision=precision)
    alone, eight = estimate(run, H100), estimate(run, H100, 8)
    count = count_parameters(run.model)
    assert state_bytes(run) == (16 if precision == "fp32" else 18) * count.total
    assert 16 * count.total / 8 < state_bytes(run, 8) < state_bytes(run) / 4
    assert eight.flops == alone.flops
    assert eight.seconds < alone.seconds
    assert eight.device_seconds == 8 * eight.seconds


def test_experts_that_are_dealt_out_are_not_gathered():
    """Of 6 experts at most 2 are on each of 4 devices; on 8 each layer gathers all six."""
    run = config(experts=6)
    of_one = count_parameters(run.model).routed_experts / 6
    assert state_bytes(run, 4) > 16 * 2 * of_one
    assert state_bytes(run, 8) - 16 * count_parameters(run.model).total / 8 > 12 * 6 * of_one / 16


@pytest.mark.slow
@pytest.mark.parametrize("study", study_names(REPOSITORY))
def test_every_run_of_the_papers_own_grids_can_be_placed_on_gpus(study):
    """Of 80 GB, but for sectional, whose conventional mixtures of 7B are as its YAML says."""
    grid = load_study(study, REPOSITORY).grids.get("paper")
    if grid is None:
        pytest.skip("it has no grid of a paper's")
    gpu = GPUS["h200"] if study == "sectional" else H100
    costs = [placed(run.config, gpu) for run in expand(grid, TEXT, f"{study}.yaml")]
    assert max(cost.device_bytes for cost in costs) <= gpu.own_memory
