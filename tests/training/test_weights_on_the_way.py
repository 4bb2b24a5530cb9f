"""Weights that are kept on the way: those that training passed, however often it was cut off."""

import pytest
import torch

from moelaws.files.atomic import read_json
from moelaws.records.tensors import are_kept
from moelaws.training import weights
from moelaws.training.loop import Trainer


def test_they_are_the_model_that_training_had_then(configure, train, results):
    config = configure(steps=6)
    states = {}
    step = Trainer.train_step

    def recorded(self):
        step(self)
        states[self.step] = {k: v.clone() for k, v in self.model.state_dict().items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "train_step", recorded)
        train(config, keep_weights=True, keep_steps=(2, 4))
    folder = results.weights(config.run_id)
    assert read_json(results.kept(config.run_id)) == {"status": "completed", "steps": [2, 4]}
    for at, file in ((2, 2), (4, 4), (6, None)):
        _, model = weights.load(folder, file)
        kept = model.state_dict()
        assert all(torch.equal(kept[name], value) for name, value in states[at].items()), at


def test_a_run_that_is_cut_off_goes_on_and_keeps_the_same(configure, train, results, stopped):
    config = configure(steps=8)
    train(config, keep_weights=True, keep_steps=(2, 6))
    folder = results.weights(config.run_id)
    whole = {step: weights.load(folder, step)[1].state_dict() for step in (2, 6, None)}
    weights.forget(folder)
    results.summary(config.run_id).unlink()
    stopped(config, 4, keep_weights=True, keep_steps=(2, 6))
    assert [path.name for path in folder.glob("*.safetensors")] == ["step_2.safetensors"]
    lines = []
    train(config, keep_weights=True, keep_steps=(2, 6), log=lines.append)
    assert any("resumed at step 4" in line for line in lines)
    for step, state in whole.items():
        again = weights.load(folder, step)[1].state_dict()
        assert all(torch.equal(again[name], value) for name, value in state.items()), step


def test_a_checkpoint_past_weights_that_are_gone_is_refused(configure, train, results, stopped):
    config = configure(steps=8)
    stopped(config, 4, keep_weights=True, keep_steps=(2,))
    lines = []
    train(config, keep_weights=True, keep_steps=(2, 3), log=lines.append)
    assert any("the weights after step 3 were not kept" in line for line in lines)
    assert are_kept(results.weights(config.run_id), config.run_id, (2, 3))
