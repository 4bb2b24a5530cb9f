"""A trainer killed by SIGKILL at any step of a run's life: the next one ends as if unharmed."""

import os
from functools import partial

from killed import killed_at
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results

# `make hostile` takes a run of more checkpoints, and so more kills.
STEPS = 32 if "MOELAWS_HOSTILE" in os.environ else 2


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def measured(results, config):
    """The summary without the times of the processes that it took."""
    summary = read_json(results.summary(config.run_id))
    times = ("wall_seconds", "training_seconds", "tokens_per_second", "peak_memory_bytes")
    return {key: value for key, value in summary.items() if key not in times}


def test_a_kill_anywhere_leaves_nothing_and_changes_nothing(configure, train, tmp_path):
    config = configure(steps=STEPS)
    options = {"keep_weights": True, "checkpoint_seconds": 0.0, "history_seconds": 0.0}
    whole = Results(tmp_path / "whole")
    train(config, results=whole, **options)
    point, killed = 0, True
    while killed:
        results = Results(tmp_path / str(point))
        trainer = partial(train, config, results=results, **options)
        killed = killed_at(point, trainer)
        trainer()
        assert files(results.root) == files(whole.root)
        assert measured(results, config) == measured(whole, config)
        point += 1
    assert point > 10 + STEPS
