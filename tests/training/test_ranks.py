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

MOE = {
    "kind": "moe", "top_k": 2, "d_expert": 16, "n_experts": 8, "n_shared": 1,
    "load_balance": 0.01, "router_z": 0.001, "jitter": 0.01,
}  # fmt: skip
DENSE = {"kind": "dense", "d_ffn": 48}
OF_A_BASE = {
    "parameterization": "completep",
    "base": {"n_layers": 1, "d_model": 8, "n_heads": 2, "n_kv": 1, "n_experts": 4, "top_k": 1,
             "d_expert": 8, "n_shared": 1},
}  # fmt: skip
SLICES = {"n_experts": 4, "d_expert": 12, "n_heads": 1}
# Name -> what differs in the model, and in the optimizer
CASES = {
    "experts": ({"ffn": MOE}, {}),
    "fewer experts than processes": ({"ffn": MOE | {"n_experts": 3}}, {}),
    "dense": ({"ffn": DENSE}, {}),
    "sigmoids, a bias, a capacity": (
        {"ffn": {
            "kind": "moe", "top_k": 2, "d_expert": 16, "n_experts": 6, "gate": "sigmoid",
            "balance": "bias", "bias_rate": 0.01, "sequence_balance": 0.01, "capacity_factor": 1.0,
        }},
        {},
    ),
    "slices": ({"ffn": DENSE, "slices": SLICES}, {}),
    "chunks": ({"ffn": MOE | {"route_by": "chunk", "chunk": 8}}, {}),
    "Muon, which sees whole matrices": (
        {"ffn": MOE | {"n_experts": 6}}, {"kind": "muon"},
    ),
    "rates of a base": ({"ffn": MOE, **OF_A_BASE}, {}),
    "rates of a base by Muon": ({"ffn": MOE, **OF_A_BASE}, {"kind": "muon"}),
}  # fmt: skip


def trained(config, processes, micro_batch=0):
    starter = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    start = starter if processes > 1 else []
    line = [sys.executable, *start, Path(__file__).with_name("several.py")]
    words = [config.canonical_json(), str(micro_batch)]
    done = subprocess.run([*line, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_losses_and_the_load_are_those_of_one_process(configure, case):
    model, optimizer = CASES[case]
    config = configure(
        model={"context": 32, "tied_embeddings": True, **model}, steps=20, batch=8,
        balance_group=1, max_epochs=1000.0, optimizer={"lr": 0.003, **optimizer},
    )  # fmt: skip
    alone, two, four = (trained(config, n, micro) for n, micro in ((1, 0), (2, 2), (4, 0)))
    assert np.array(alone["rows"]).shape == (20, 7)
    for several in (two, four):
        losses = [[row[3] for row in one["rows"]] for one in (several, alone)]
        np.testing.assert_allclose(*losses, rtol=0, atol=1e-4 if optimizer else 1e-5)
        if not optimizer:
            np.testing.assert_allclose(several["rows"], alone["rows"], rtol=1e-5, atol=1e-5)
            assert several["windows"] == alone["windows"]
    # What each holds is its part, up to a row of each parameter.
    assert two["held"] < 0.55 * alone["held"]
    assert four["held"] < 0.3 * alone["held"]


def test_of_several_processes_only_weights_that_stay_are_cast_once():
    gathered, dealt = torch.ones(2), torch.ones(2)
    dealt.dealt = 0, 4
    with casting_once(Ranks(0, 2).is_kept):
        assert cast(dealt, torch.bfloat16) is cast(dealt, torch.bfloat16)
        assert cast(gathered, torch.bfloat16) is not cast(gathered, torch.bfloat16)
    with casting_once(ALONE.is_kept):
        assert cast(gathered, torch.bfloat16) is cast(gathered, torch.bfloat16)
