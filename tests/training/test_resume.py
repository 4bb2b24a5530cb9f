"""Runs that are killed, stopped or started twice, in processes of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from moelaws.files.atomic import read_json, write_json
from moelaws.records import provenance
from moelaws.records.code import training_code
from moelaws.records.summary import RunSummary
from waiting import wait_for

# A checkpoint after every step, then as a user's process would be.
EVERY_STEP = """
import sys
from pathlib import Path
from moelaws.files.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.training.plan import TrainingOptions
from moelaws.training.run import train
config = parse(RunConfig, __import__("json").loads(sys.stdin.read()), "standard input")
options = TrainingOptions(checkpoint_seconds=0.0)
train(config, Results(Path(sys.argv[1])), Path(sys.argv[2]), options)
"""
# The command line with a slow disk: signals that are repeated meet a checkpoint half written.
SLOW_DISK = """
import time
from moelaws.cli import main
from moelaws.training import checkpoint
save = checkpoint.save
checkpoint.save = lambda *content: (time.sleep(0.5), save(*content))
main()
"""


def start(words, config):
    """A trainer in its own process, fed with ``config``."""
    process = subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    process.stdin.write(config.canonical_json())
    process.stdin.close()
    process.stdin = None
    return process


def losses_and_all(results, config):
    columns = pq.read_table(results.run(config.run_id) / "history.parquet").to_pydict()
    del columns["seconds"]
    return columns


def test_a_run_killed_with_sigkill_ends_as_if_it_had_not_been(
    configure, train, results, corpus, tmp_path, monkeypatch
):
    config = configure(steps=300, batch=2)
    saved = results.checkpoint(config.run_id) / "latest.json"
    process = start(["-c", EVERY_STEP, results.root, corpus[1]], config)
    wait_for(saved.exists)
    time.sleep(0.1)
    process.kill()
    process.communicate()
    assert not results.summary(config.run_id).exists()
    lines = []
    monkeypatch.setattr(provenance, "training_code", lambda: "edited meanwhile")
    resumed = train(config, log=lines.append)
    step = next(int(s.split(" step ")[1].split("/")[0]) for s in lines if "resumed" in s)
    assert 0 < step < 300

    undisturbed = type(results)(tmp_path / "undisturbed")
    whole = train(config, results=undisturbed, log=lines.append)
    for name in ("loss", "loss_se", "bits_per_byte", "train_loss", "balance", "tokens", "epochs"):
        assert getattr(resumed, name) == getattr(whole, name), name
    assert losses_and_all(results, config) == losses_and_all(undisturbed, config)
    made_by = read_json(results.run(config.run_id) / "provenance.json")
    assert made_by["code"] == "edited meanwhile"
    (killed,) = made_by["resumed_from"]
    assert killed["code"] == training_code()
    assert killed["started"] <= made_by["started"]
    assert (killed["device"], killed["threads"]) == ("cpu", 1)
    assert not saved.parent.exists()


@pytest.mark.parametrize("damage", ["truncated", "of another run", "of other data"])
def test_a_bad_checkpoint_is_refused_and_the_run_starts_over(
    configure, train, results, stopped, damage
):
    config, other = configure(steps=20), configure(steps=21)
    expected = train(config, results=type(results)(results.root / "clean"))
    stopped(other, 5)
    path, elsewhere = (results.checkpoint(c.run_id) / "latest.json" for c in (config, other))
    shutil.copytree(elsewhere.parent, path.parent)
    if damage == "truncated":
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
    elif damage == "of other data":
        index = read_json(path) | {"identity": {"run": config.run_id, "data": "0" * 64}}
        write_json(path, index)
    lines = []
    assert train(config, log=lines.append).loss == expected.loss
    assert any("checkpoint refused, the run starts over" in line for line in lines)
    assert elsewhere.exists()  # nothing else is lost


def test_a_checkpoint_from_before_there_were_trunks_goes_on(configure, train, results, stopped):
    config = configure(steps=20)
    expected = train(config, results=type(results)(results.root / "clean"))
    stopped(config, 5)
    path = results.checkpoint(config.run_id) / "latest.json"
    index = read_json(path)
    index["state"].pop("trained")
    for key in ("other_loads", "steps"):
        index["state"]["trainer"].pop(key)
    write_json(path, index)
    lines = []
    summary = train(config, log=lines.append)
    assert any("resumed at step 5/20" in line for line in lines)
    assert (summary.loss, summary.shared_steps) == (expected.loss, 0)
    assert summary.flops_spent == summary.flops


@pytest.mark.parametrize(
    ("signum", "times", "code"),
    [(signal.SIGTERM, 3, 143), pytest.param(signal.SIGINT, 1, 130, marks=pytest.mark.slow)],
)
def test_a_signal_leaves_a_checkpoint(configure, results, corpus, signum, times, code):
    """Also where a scheduler repeats it."""
    config = configure(steps=30_000, batch=2, max_epochs=100)
    words = ["-c", SLOW_DISK, "train", "-", "--results", results.root, "--corpus", corpus[1]]
    process = start(words, config)
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
def test_two_trainers_of_one_run_train_it_once(configure, results, corpus):
    config = configure(steps=150)
    words = ["-m", "moelaws", "train", "-", "--results", results.root, "--corpus", corpus[1]]
    both = [start([*words, "--json"], config) for _ in range(2)]
    ended = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    first, second = (json.loads(out) for out, _ in ended)
    assert first == second
    assert RunSummary.model_validate(first).status == "completed"
    assert sum("back end" in err for _, err in ended) == 1
