"""Weights that are kept on the way: those that training passed, however often it was cut off."""

import os
import signal

import pytest
import torch

from moelaws.records.files import read_json
from moelaws.records.tensors import are_kept
from moelaws.spec.errors import UserError
from moelaws.training import weights
from moelaws.training.loop import Trainer
from moelaws.training.signals import Stopped


def test_they_are_the_model_that_training_had_then(configure, train, results):
    config = configure(steps=6)
    states = {}
    step = Trainer._step

    def recorded(self):
        step(self)
        states[self.step] = {k: v.clone() for k, v in self.model.state_dict().items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_step", recorded)
        train(config, keep_weights=True, keep_steps=(2, 4))
    folder = results.weights(config.run_id)
    assert read_json(results.kept(config.run_id)) == {"status": "completed", "steps": [2, 4]}
    for at, file in ((2, 2), (4, 4), (6, None)):
        _, model = weights.load(folder, file)
        kept = model.state_dict()
        assert all(torch.equal(kept[name], value) for name, value in states[at].items()), at


def test_a_run_that_is_cut_off_goes_on_and_keeps_the_same(configure, train, results, monkeypatch):
    config = configure(steps=8)
    train(config, keep_weights=True, keep_steps=(2, 6))
    folder = results.weights(config.run_id)
    whole = {step: weights.load(folder, step)[1].state_dict() for step in (2, 6, None)}
    weights.forget(folder)
    results.summary(config.run_id).unlink()
    cut_off_after(4, monkeypatch)
    with pytest.raises(Stopped):
        train(config, keep_weights=True, keep_steps=(2, 6))
    assert set(files(folder)) == {"step_2.safetensors"}
    monkeypatch.undo()
    lines = []
    train(config, keep_weights=True, keep_steps=(2, 6), log=lines.append)
    assert any("resumed at step 4" in line for line in lines)
    for step, state in whole.items():
        again = weights.load(folder, step)[1].state_dict()
        assert all(torch.equal(again[name], value) for name, value in state.items()), step


def test_a_checkpoint_past_weights_that_are_gone_is_refused(configure, train, results, monkeypatch):
    config = configure(steps=8)
    cut_off_after(4, monkeypatch)
    with pytest.raises(Stopped):
        train(config, keep_weights=True, keep_steps=(2,))
    monkeypatch.undo()
    lines = []
    train(config, keep_weights=True, keep_steps=(2, 3), log=lines.append)
    assert any("the weights after step 3 were not kept" in line for line in lines)
    assert are_kept(results.weights(config.run_id), config.run_id, (2, 3))


def test_a_run_that_is_done_without_one_of_them_is_trained_again(configure, train, results):
    config = configure(steps=4)
    first = train(config, keep_weights=True)
    lines = []
    again = train(config, keep_weights=True, keep_steps=(2,), log=lines.append)
    assert any("weights were not kept" in line for line in lines)
    assert again.loss == first.loss
    # Who asks for fewer is content.
    assert train(config, keep_weights=True) == again


def test_a_diverged_run_keeps_none(configure, train, results):
    config = configure(steps=400, optimizer={"lr": 30.0, "clip": 0})
    train(config, keep_weights=True, keep_steps=(2,))
    assert read_json(results.kept(config.run_id)) == {"status": "diverged"}
    assert files(results.weights(config.run_id)) == {}
    with pytest.raises(UserError, match="does not exist"):
        weights.load(results.weights(config.run_id), 2)


def files(folder):
    return {path.name: path for path in folder.glob("*.safetensors")}


def cut_off_after(steps, monkeypatch):
    """Has a SIGTERM come after so many steps."""
    step = Trainer._step

    def signalled(self):
        step(self)
        if self.step == steps:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Trainer, "_step", signalled)
