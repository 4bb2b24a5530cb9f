"""The loop: when it gives up, and when it saves."""

import math

import pytest

from moelaws.spec.errors import UserError
from moelaws.training import callbacks, checkpoint
from moelaws.training.loop import PATIENCE, Trainer


def test_losses_that_stay_above_uniform_guessing_end_the_run(configure, trainer_of, monkeypatch):
    """ln V + 1 nats, finite, for PATIENCE steps in a row: a result, noticed while it trains."""
    config = configure(steps=4 * PATIENCE)
    trainer = trainer_of(config)
    gradients = trainer._gradients

    def worse(tokens):
        losses, counts_LE = gradients(tokens)
        return losses + (math.log(280) + 1 if trainer.step >= 7 else 0), counts_LE

    monkeypatch.setattr(trainer, "_gradients", worse)
    assert not trainer.run()
    assert trainer.step == len(trainer.history) == 7 + PATIENCE
    assert max(trainer.expert_load.ends) <= trainer.step


def test_a_disk_that_is_full_for_a_while_costs_no_training(configure, train, monkeypatch):
    full = iter([True, True, False, True])
    lines, saved, save = [], [], checkpoint.save

    def fails(*words):
        if next(full, True):
            raise UserError("latest.json: cannot be written; is the disk full?")
        saved.append(words)
        save(*words)

    monkeypatch.setattr(checkpoint, "save", fails)
    config = configure(steps=4)
    summary = train(config, checkpoint_seconds=0.0, log=lines.append)
    assert summary.status == "completed"
    assert len(saved) == 1
    assert sum("Training goes on" in line for line in lines) == 3


@pytest.mark.parametrize(("of_a_save", "saved_at"), [(0.0, [5, 10, 15]), (2.0, [5, 11, 17])])
def test_checkpoints_follow_wall_time(configure, train, monkeypatch, of_a_save, saved_at):
    """A step takes 7 s of a clock of our own: one each 30 s, or twenty times what it takes."""
    now = 0.0
    saved = []
    step = Trainer.train_step

    def slow(trainer):
        nonlocal now
        now += 7.0
        step(trainer)

    def save(self, trainer):
        nonlocal now
        now += of_a_save
        saved.append(trainer.step)

    monkeypatch.setattr(Trainer, "train_step", slow)
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: now)
    monkeypatch.setattr(callbacks.Checkpoints, "save", save)
    train(configure(steps=17))
    assert saved == saved_at
