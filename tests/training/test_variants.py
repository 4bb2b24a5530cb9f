"""Architectures and optimizers trained for real: stopped anywhere and continued, it is the same
run."""

import pytest
import torch

from calls import Calls
from moelaws.training.expert_load import WINDOWS
from random_corpus import EXPERTS

DENSE = {"kind": "dense", "d_ffn": 24}
SLICES = {"n_experts": 4, "d_expert": 8, "n_heads": 2}
JITTER = {**EXPERTS, "jitter": 0.1, "load_balance": 0, "router_z": 0}
CHUNKS = {**EXPERTS, "route_by": "chunk", "chunk": 8, "balance": "bias", "bias_rate": 0.1}
SIGMOIDS = {
    **EXPERTS, "gate": "sigmoid", "route_scale": 2.5, "balance": "bias", "sequence_balance": 0.1,
    "capacity_factor": 1.0,
}  # fmt: skip
# name -> what ``configure`` is given; each has a state, or a course of its steps, of its own
VARIANTS = {
    "shared expert, tied": {"ffn": {**EXPERTS, "n_shared": 1}, "model": {"tied_embeddings": True}},
    "Muon": {"optimizer": {"kind": "muon", "lr": 1e-2}},
    "chunks by a router with a bias": {"ffn": CHUNKS},
    "dense GELU": {"ffn": {**DENSE, "mlp": "gelu"}},
    "bf16": {"precision": "bf16"},
    "jitter": {"ffn": JITTER},
    "sigmoids, a bias, a loss by sequence, a capacity": {"ffn": SIGMOIDS},
    "slices": {"ffn": DENSE, "model": {"slices": SLICES, "qk_norm": True}},
    "shuffled text": {"shuffle": "tokens"},
    "WSD, scale-free decay": {
        "schedule": {"kind": "wsd"},
        "optimizer": {"lr": 1e-2, "scale_free": True, "weight_decay": 1e-5},
    },
}


def outcome(trainer):
    rows = [row[:-1] for row in trainer.history.rows]  # without the time
    tensors = [tensor.detach() for tensor in trainer.model.trained().values()]
    return rows, trainer.expert_load.windows, tensors


@pytest.mark.parametrize(
    ("variant", "steps"),
    [
        *((variant, 7) for variant in VARIANTS),
        ("shared expert, tied", 2 * WINDOWS),  # it stops inside windows of the load, too
    ],
)
def test_continued_from_any_step_it_is_the_same_run_bit_for_bit(
    configure, trainer_of, variant, steps, through_a_file
):
    config = configure(**VARIANTS[variant], steps=steps)
    whole = trainer_of(config)
    states = []
    whole.callbacks = [
        Calls(after_step=lambda t: t.step < 8 and states.append(through_a_file(t.state())))
    ]
    whole.run()
    expected = outcome(whole)
    for state in states:
        continued = trainer_of(config)
        continued.restore(state)
        assert continued.run()
        rows, windows, parameters = outcome(continued)
        assert rows == expected[0]
        for tensor, want in zip([*windows, *parameters], [*expected[1], *expected[2]], strict=True):
            assert torch.equal(tensor, want)


def test_a_continued_run_keeps_its_micro_batch_unless_a_smaller_one_is_asked_for(
    configure, trainer_of, through_a_file
):
    config = configure(ffn=JITTER, steps=4, balance_group=1)
    states = []
    whole = trainer_of(config, micro_batch=2)
    whole.callbacks = [Calls(after_step=lambda t: states.append(through_a_file(t.state())))]
    whole.run()
    for requested, used in ((None, 2), (2, 2), (4, 2), (1, 1)):
        continued = trainer_of(config, requested)
        continued.restore(states[1])
        assert continued.micro_batch == used
        if used == 2:
            continued.run()
            assert outcome(continued)[0] == outcome(whole)[0]
