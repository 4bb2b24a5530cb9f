"""A run that is watched while it trains: its history can be read before it ends."""

import os
import signal

import pytest

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.records.watching import Planned, Watching
from moelaws.training.history import COLUMNS
from waiting import wait_for

STEPS = 200


@pytest.mark.slow
def test_a_run_is_seen_at_work_killed_and_resumed(configure, train, tmp_path):
    config, results = configure(steps=STEPS), Results(tmp_path / "results")
    often = {"checkpoint_seconds": 0.0, "history_seconds": 0.0}
    run = config.run_id
    watching = Watching(results, {run: Planned("own", ("ours",), 1.0, STEPS, 1, 1, 1.0)})
    assert watching.look().courses[run].state == "waiting"
    trainer = os.fork()
    if trainer == 0:
        train(config, results=results, **often)
        os._exit(0)
    course = wait_for(lambda: (seen := watching.look().courses[run]).step >= 20 and seen)
    os.kill(trainer, signal.SIGKILL)
    os.waitpid(trainer, 0)
    assert course.state == "running"
    assert 0 < course.loss < 10
    assert course.tokens_per_second > 0
    assert course.device == "cpu"
    history = read_parquet(results.history_so_far(run))
    assert history.column_names == list(COLUMNS)

    stopped = watching.look().courses[run]
    assert (stopped.state, stopped.seconds_left) == ("interrupted", None)
    assert 20 <= stopped.step < STEPS
    train(config, results=results, **often)
    done = watching.look()
    assert done.finished
    assert done.courses[run].step == STEPS
    assert not results.history_so_far(run).exists()
