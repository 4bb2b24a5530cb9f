"""A run trained by several processes is the run that one process trains."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from moelaws.model.casting import cast, casting_once
from moelaws.training.ranks import ALONE, Ranks

CONFIG = {
    "corpus": {"source": {"digest": "0" * 64}, "vocab_size": 300},
    "model": {
        "context": 32, "d_model": 16, "n_layers": 2, "n_heads": 2, "n_kv": 1, "vocab_size": 300,
        "tied_embeddings": True,
    },
    "batch": 8, "balance_group": 1, "steps": 20, "max_epochs": 1000.0,
    "evaluation": {"sequences": 32}, "optimizer": {"lr": 0.003},
}  # fmt: skip
MOE = {
    "kind": "moe", "top_k": 2, "d_expert": 16, "n_experts": 8, "n_shared": 1,
    "load_balance": 0.01, "router_z": 0.001, "jitter": 0.01,
}  # fmt: skip
DENSE = {"kind": "dense", "d_ffn": 48}
SLICES = {"n_experts": 4, "d_expert": 12, "n_heads": 1}
# Name -> what differs in the model, and in the run
CASES = {
    "experts": ({"ffn": MOE}, {}),
    "unequal numbers of experts": ({"ffn": MOE | {"n_experts": 6}}, {}),
    "fewer experts than processes": ({"ffn": MOE | {"n_experts": 3}}, {}),
    "gelu experts": ({"ffn": MOE | {"mlp": "gelu"}}, {}),
    "dense": ({"ffn": DENSE}, {}),
    "sigmoids, a bias, a capacity": (
        {"ffn": {
            "kind": "moe", "top_k": 2, "d_expert": 16, "n_experts": 6, "gate": "sigmoid",
            "balance": "bias", "bias_rate": 0.01, "sequence_balance": 0.01, "capacity_factor": 1.0,
        }},
        {},
    ),
    "slices": ({"ffn": DENSE, "slices": SLICES}, {}),
    "slices of chunks": ({"ffn": DENSE, "slices": {**SLICES, "positions": "chunks"}}, {}),
    "chunks": ({"ffn": MOE | {"route_by": "chunk", "chunk": 8}}, {}),
    "Muon, which sees whole matrices": (
        {"ffn": MOE | {"n_experts": 6}}, {"optimizer": {"kind": "muon", "lr": 0.003}},
    ),
}  # fmt: skip


def trained(tmp_path, processes, model, micro_batch=0, last=99, **changes):
    config = {**CONFIG, "model": {**CONFIG["model"], **model}, **changes}
    words = [str(Path(__file__).with_name("several.py")), json.dumps(config), str(micro_batch)]
    words += [str(tmp_path / "checkpoint/latest.json"), str(last)]
    start = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    done = subprocess.run(
        [sys.executable, *(start if processes > 1 else []), *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def losses(one):
    return [row[3] for row in one["rows"]]


def assert_alike(one, other, tolerance=1e-5):
    assert np.array(one["rows"]).shape == (20, 7)
    np.testing.assert_allclose(losses(one), losses(other), rtol=0, atol=tolerance)
    if tolerance == 1e-5:
        np.testing.assert_allclose(one["rows"], other["rows"], rtol=1e-5, atol=1e-5)
        assert one["windows"] == other["windows"]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_losses_and_the_load_are_those_of_one_process(tmp_path, case):
    model, changes = CASES[case]
    alone = trained(tmp_path, 1, model, **changes)
    two = trained(tmp_path, 2, model, micro_batch=2, **changes)
    four = trained(tmp_path, 4, model, **changes)
    for several in (two, four):
        assert_alike(several, alone, 1e-4 if "Muon" in case else 1e-5)
    # What each holds is its part, up to a row of each parameter.
    assert two["held"] < 0.55 * alone["held"]
    assert four["held"] < 0.3 * alone["held"]


@pytest.mark.slow
def test_in_bf16_the_losses_of_two_processes_differ_by_its_rounding(tmp_path):
    alone, two = (
        trained(tmp_path, n, {"ffn": MOE}, micro_batch=2, precision="bf16") for n in (1, 2)
    )
    np.testing.assert_allclose(losses(two), losses(alone), rtol=0, atol=2e-3)


def test_of_several_processes_only_weights_that_stay_are_cast_once():
    gathered, dealt = torch.ones(2), torch.ones(2)
    dealt.dealt = 0, 4
    with casting_once(Ranks(0, 2).is_kept):
        assert cast(dealt, torch.bfloat16) is cast(dealt, torch.bfloat16)
        assert cast(gathered, torch.bfloat16) is not cast(gathered, torch.bfloat16)
    with casting_once(ALONE.is_kept):
        assert cast(gathered, torch.bfloat16) is cast(gathered, torch.bfloat16)


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(tmp_path):
    whole = trained(tmp_path / "undisturbed", 1, {"ffn": MOE})
    for processes, last in ((4, 5), (2, 10), (1, 15), (2, 99)):
        ended = trained(tmp_path, processes, {"ffn": MOE}, last=last)
    assert_alike(ended, whole)
