"""Runs that are stopped or started twice, in processes of their own; a foreign checkpoint."""

import json
import shutil
import signal
import time

import pytest

from moelaws.records.summary import RunSummary
from waiting import wait_for

# The command line with a slow disk: signals that are repeated meet a checkpoint half written.
SLOW_DISK = """
import time
from moelaws.cli import main
from moelaws.training import checkpoint
save = checkpoint.save
checkpoint.save = lambda *content: (time.sleep(0.5), save(*content))
main()
"""


def test_a_checkpoint_of_another_run_is_refused_and_the_run_starts_over(
    configure, train, results, stopped
):
    config, other = configure(steps=20), configure(steps=21)
    expected = train(config, results=type(results)(results.root / "clean"))
    stopped(other, 5)
    path, elsewhere = (results.checkpoint(c.run_id) / "latest.json" for c in (config, other))
    shutil.copytree(elsewhere.parent, path.parent)
    lines = []
    assert train(config, log=lines.append).loss == expected.loss
    assert any("checkpoint refused, the run starts over" in line for line in lines)
    assert elsewhere.exists()  # nothing else is lost


@pytest.mark.parametrize(
    ("signum", "times", "code"),
    [(signal.SIGTERM, 3, 143), pytest.param(signal.SIGINT, 1, 130, marks=pytest.mark.slow)],
)
def test_a_signal_leaves_a_checkpoint(configure, results, started, signum, times, code):
    """Also where a scheduler repeats it."""
    config = configure(steps=30_000, batch=2, max_epochs=100)
    process = started(program=("-c", SLOW_DISK), config=config)
    wait_for((results.run(config.run_id) / "config.json").exists)
    time.sleep(0.3)
    for _ in range(times):
        process.send_signal(signum)
        time.sleep(0.01)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert f"stopped by {signal.Signals(signum).name}; checkpoint written" in errors
    assert "Traceback" not in errors
    assert (results.checkpoint(config.run_id) / "latest.json").exists()
    assert not (results.run(config.run_id) / "lock").exists()
    assert not results.summary(config.run_id).exists()


@pytest.mark.slow
def test_two_trainers_of_one_run_train_it_once(configure, started):
    both = [started("--json", config=configure(steps=150)) for _ in range(2)]
    ended = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    first, second = (json.loads(out) for out, _ in ended)
    assert first == second
    assert RunSummary.model_validate(first).status == "completed"
    assert sum("back end" in err for _, err in ended) == 1
