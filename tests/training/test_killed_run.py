"""A trainer killed by SIGKILL at any step of a run's life: the next one ends as if unharmed."""

import os
from functools import partial

import pyarrow.parquet as pq

from killed import killed_at
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.records import provenance
from moelaws.records.code import training_code

# `make hostile` takes a run of more checkpoints, and so more kills.
STEPS = 32 if "MOELAWS_HOSTILE" in os.environ else 2


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def measured(results, config):
    """The summary and the history without the times of the processes that they took."""
    summary = read_json(results.summary(config.run_id))
    times = ("wall_seconds", "tokens_per_second", "peak_memory_bytes")
    history = pq.read_table(results.run(config.run_id) / "history.parquet").to_pydict()
    return {k: v for k, v in {**summary, **history}.items() if k not in (*times, "seconds")}


def test_a_kill_anywhere_leaves_nothing_and_changes_nothing(
    configure, train, tmp_path, monkeypatch
):
    config = configure(steps=STEPS)
    options = {"keep_weights": True, "checkpoint_seconds": 0.0, "history_seconds": 0.0}
    whole = Results(tmp_path / "whole")
    train(config, results=whole, **options)
    point, killed, origins = 0, True, []
    while killed:
        results = Results(tmp_path / str(point))
        trainer = partial(train, config, results=results, **options)
        killed = killed_at(point, trainer)
        with monkeypatch.context() as patch:
            patch.setattr(provenance, "training_code", lambda: "edited meanwhile")
            trainer()
        assert files(results.root) == files(whole.root)
        assert measured(results, config) == measured(whole, config)
        origins.append(read_json(results.run(config.run_id) / "provenance.json"))
        point += 1
    assert point > 10 + STEPS
    resumed = [made_by for made_by in origins if made_by["resumed_from"]]
    assert len(resumed) > STEPS
    for made_by in resumed:
        (before,) = made_by["resumed_from"]
        assert (before["code"], before["device"], before["threads"]) == (training_code(), "cpu", 1)
        assert before["started"] <= made_by["started"]
