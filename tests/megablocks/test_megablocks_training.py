"""A whole model on MegaBlocks' layer: losses, gradients, training, and another one's checkpoint."""

import pytest
import torch
from expert_cases import DEVICE, FP32, model_of, moe_of

from calls import Calls, Made
from moelaws.model.backends import BACKENDS
from moelaws.model.transformer import Transformer
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.run import AdamW, RunConfig
from moelaws.training import checkpoint
from moelaws.training.loop import Trainer

MEGABLOCKS, TORCH = BACKENDS["megablocks"], BACKENDS["torch"]


def config_of(precision="fp32", top_k=2, steps=4, **changes):
    model = model_of(moe_of(top_k=top_k, n_shared=1, **changes))
    return RunConfig(
        model=model, steps=steps, batch=2, balance_group=1, optimizer=AdamW(lr=3e-2),
        corpus=Corpus(source=Text(digest="0" * 64), vocab_size=model.vocab_size),
        precision=precision,
    )  # fmt: skip


def trainer_of(config, backend):
    model = Transformer(config.model, 0, backend, config.precision).to(DEVICE)
    return Trainer(config, model, Made(config))


def assert_alike(trainer, other):
    """The same measurements at every step, wall time left out, and the same weights."""
    assert len(trainer.history) == trainer.config.steps
    rows, expected = (torch.tensor(t.history.rows)[:, :-1] for t in (trainer, other))
    torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)
    state = trainer.model.state_dict()
    for name, value in other.model.state_dict().items():
        torch.testing.assert_close(state[name], value, rtol=1e-3, atol=1e-4, msg=name)


@FP32
@pytest.mark.parametrize(
    "changes",
    [{}, {"gate": "sigmoid", "balance": "bias", "bias_rate": 0.1, "capacity_factor": 0.75}],
    ids=["softmax", "sigmoid, bias, capacity"],
)
def test_training_follows_the_torch_back_end_step_by_step(changes):
    config = config_of(**changes)
    trainer, other = trainer_of(config, MEGABLOCKS), trainer_of(config, TORCH)
    assert trainer.run()
    assert other.run()
    assert_alike(trainer, other)


@FP32
@pytest.mark.parametrize(
    ("first", "then"), [(TORCH, MEGABLOCKS), (MEGABLOCKS, TORCH)], ids=["to", "from"]
)
def test_a_checkpoint_of_one_back_end_continues_on_the_other(first, then, tmp_path):
    config, path = config_of(), tmp_path / "latest.json"
    whole, killed, resumed = (trainer_of(config, b) for b in (first, first, then))
    assert whole.run()

    def kill(trainer):
        if trainer.step == 2:
            raise KeyboardInterrupt

    killed.callbacks = [Calls(after_step=kill)]
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    checkpoint.save(path, {"run": config.run_id}, killed.state())
    state, refused = checkpoint.load(path, {"run": config.run_id})
    assert not refused
    resumed.restore(state)
    assert resumed.step == 2
    assert resumed.run()
    assert_alike(resumed, whole)
