"""The loop: what counts as training time."""

import pytest

from moelaws.corpus.batches import Batches
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.transformer import Transformer
from moelaws.training import loop
from moelaws.training.history import History
from moelaws.training.loop import SETTLE, Trainer


def test_waiting_for_the_device_is_training_time(configure, corpus, monkeypatch):
    """A device that takes 2 s a step while the host runs ahead, on a clock of our own."""
    config = configure(steps=2 * SETTLE + 5)
    now = 0.0
    settle = History.settle

    def waits(history):
        nonlocal now
        now += 2.0 * len(history._pending)
        settle(history)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: now)
    monkeypatch.setattr(History, "settle", waits)
    data = Batches(PreparedCorpus.open(corpus[1]), config.batch, config.model.context, config.seed)
    trainer = Trainer(config, Transformer(config.model, config.seed), data)

    def checkpoint():
        if trainer.step == 7:
            assert trainer.state()["seconds"] == pytest.approx(2.0 * 7)

    assert trainer.run(checkpoint)
    assert trainer.seconds == pytest.approx(2.0 * config.steps)
