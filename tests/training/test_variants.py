"""Every architecture trained for real: stopped anywhere and continued, it is the same run."""

import pytest
import torch
from variants import VARIANTS, run_data

from calls import Calls
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig


def outcome(trainer):
    rows = [row[:-1] for row in trainer.history.rows]  # without the time
    tensors = [tensor.detach() for tensor in trainer.model.trained().values()]
    return rows, trainer.expert_load.windows, tensors


FIRST = ("shared expert", "Muon", "chunks by a router with a bias", "dense GELU", "bf16")


@pytest.mark.parametrize(
    ("variant", "steps"),
    [
        *((variant, 7) for variant in FIRST),
        *(
            pytest.param(variant, steps, marks=pytest.mark.slow)
            for variant, steps in (
                *((variant, 7) for variant in VARIANTS if variant not in FIRST),
                ("shared expert", 50),  # also inside load's windows
            )
        ),
    ],
)
def test_continued_from_any_step_it_is_the_same_run_bit_for_bit(
    corpus, trainer_of, variant, steps, through_a_file
):
    config = parse(RunConfig, run_data(variant, corpus[0].model_dump(), steps=steps), "test")
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
    corpus, trainer_of, through_a_file
):
    data = run_data("jitter, no auxiliary losses", corpus[0].model_dump(), steps=4)
    config = parse(RunConfig, data, "test")
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
