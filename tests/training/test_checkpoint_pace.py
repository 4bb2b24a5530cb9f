"""Checkpoints take a bounded part of a run's time, however long one takes."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from moelaws.training import callbacks
from moelaws.training.ranks import ALONE

STEP, EVERY = 1.0, 5.0  # seconds of a step, and between checkpoints where they are fast


@pytest.mark.parametrize(("of_a_save", "saves"), [(0.0, 40), (3.0, 4)])
def test_slow_checkpoints_are_rare(monkeypatch, of_a_save, saves):
    """After 200 steps of a second: one each 5 s, or one each twenty times what it takes."""
    clock, saved = [0.0], []
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: clock[0])

    def save(trainer):
        clock[0] += of_a_save
        saved.append(clock[0])

    plan = SimpleNamespace(
        config=SimpleNamespace(run_id="0"),
        options=SimpleNamespace(checkpoint_seconds=EVERY),
        trunk=None,
    )
    checkpoints = callbacks.Checkpoints(plan, {"corpus_files": {"train.bin": ""}})
    monkeypatch.setattr(checkpoints, "save", save)
    trainer = SimpleNamespace(ranks=ALONE)
    checkpoints.before_training(trainer)
    for _ in range(200):
        clock[0] += STEP
        checkpoints.after_step(trainer)
    assert len(saved) == saves
    between = [later - earlier for earlier, later in pairwise(saved)]
    assert min(between) >= max(EVERY, 20 * of_a_save)
