"""Runs that differ in length alone share a trunk, and each ends as if it had trained alone."""

import math
import signal

import pyarrow.parquet as pq
import pytest
import torch

from killed import killed_at
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.records.batches import Order, Orders, by_trunk
from moelaws.training import trunk
from moelaws.training.loop import Trainer
from moelaws.training.weights import load
from random_corpus import EXPERTS
from waiting import wait_for

WSD = {"kind": "wsd", "warmup_steps": 3, "decay": 0.25}
LENGTHS = (12, 20, 32, 40)  # their decays begin after 9, 15, 24 and 30 steps
SPENT = (12, 20 - 9, 32 - 15, 40 - 24)
TIMES = ("wall_seconds", "shared_seconds", "tokens_per_second", "peak_memory_bytes")
OF_SHARING = ("shared_steps", "flops_spent")


@pytest.fixture
def runs(configure):
    """Makes the runs of one trunk; keywords are those of ``configure``."""

    def make(lengths=LENGTHS, **changes):
        return [configure(steps=n, schedule=WSD, **changes) for n in lengths]

    return make


@pytest.fixture
def batch(train):
    """Trains configurations as the command does in one process."""

    def make(configs, results, log=lambda line: None, **options):
        for order in by_trunk(Order(config=config) for config in configs):
            train(order.config, results, log=log, lengths=order.lengths, **options)

    return make


def columns(path):
    """A table as a text, which shows each bit; that of NaN equals itself."""
    table = pq.read_table(path).to_pydict()
    return repr({name: values for name, values in table.items() if name != "seconds"})


def record(results, config):
    """All that is on record of a run, but for times and for what it shared."""
    folder = results.run(config.run_id)
    tables = {path.name: columns(path) for path in sorted(folder.glob("*.parquet"))}
    summary = read_json(results.summary(config.run_id))
    kept = {key: v for key, v in summary.items() if key not in (*TIMES, *OF_SHARING)}
    return {"summary": kept, **tables}


def summaries(results, configs):
    return [read_json(results.summary(config.run_id)) for config in configs]


def assert_as_alone(results, configs, train, tmp_path, **options):
    alone = Results(tmp_path / "alone")
    for config in configs:
        train(config, alone, **options)
        assert record(results, config) == record(alone, config)


BIASED = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 16, "gate": "sigmoid",
          "balance": "bias", "capacity_factor": 1.0}  # fmt: skip
# Half of the models' width, depth and experts
OF_A_BASE = {
    "parameterization": "completep",
    "base": {"n_layers": 1, "d_model": 8, "n_heads": 2, "n_kv": 1, "n_experts": 2, "top_k": 1,
             "d_expert": 8},
}  # fmt: skip
MODELS = {
    "experts": {},
    "dense": {"ffn": {"kind": "dense", "d_ffn": 16}},
    "biased": {"ffn": BIASED},
    "of a base": {"model": OF_A_BASE},
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_each_branch_is_the_run_trained_alone(runs, batch, train, results, tmp_path, model):
    """At three branch points: losses, loads, held-out documents, each bit of them, and weights."""
    configs = runs(**model)
    batch(configs, results, keep_weights=True)
    assert_as_alone(results, configs, train, tmp_path, keep_weights=True)
    for config in configs:
        pair = (
            load(tree.weights(config.run_id))[1] for tree in (results, Results(tmp_path / "alone"))
        )
        for ours, theirs in zip(*(model.parameters() for model in pair), strict=True):
            assert ours.equal(theirs)
    done = summaries(results, configs)
    assert [s["steps"] - s["shared_steps"] for s in done] == list(SPENT)
    for summary in done:
        share = 1 - summary["shared_steps"] / summary["steps"]
        assert summary["flops_spent"] == pytest.approx(summary["flops"] * share)


def test_kills_on_the_way_change_nothing(runs, batch, train, results, tmp_path):
    """Process after process is killed by SIGKILL, in the trunk, at branch points and beyond."""
    configs = runs(ffn={**EXPERTS, "jitter": 0.1}, model=OF_A_BASE)
    kills: list[int] = []  # the runs that were done at each
    every = {"checkpoint_seconds": 0.0}
    while killed_at(30 + 4 * len(kills), lambda: batch(configs, results, **every)):
        kills.append(sum(results.summary(config.run_id).exists() for config in configs))
    assert set(kills) == {0, 1, 2, 3}
    assert_as_alone(results, configs, train, tmp_path)
    assert [s["steps"] - s["shared_steps"] for s in summaries(results, configs)] == list(SPENT)


def test_a_trunk_that_diverges_ends_the_runs_that_have_not_left_it(
    runs, batch, train, results, tmp_path
):
    """All but the shortest, which decays before; the next one finds out, and the others read it."""
    configs = runs((28, 100, 200, 300), optimizer={"lr": 1e-2})
    train_step = Trainer.train_step
    trained = 0

    def overflowing(trainer):
        nonlocal trained
        trained += 1
        train_step(trainer)
        if trainer.step == 33:
            with torch.no_grad():
                trainer.model.embedding.fill_(math.nan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "train_step", overflowing)
        batch(configs, results)
        assert trained < 28 + 40
        done = summaries(results, configs)
        assert [s["status"] for s in done] == ["completed", *["diverged"] * 3]
        assert [s["steps"] - s["shared_steps"] for s in done] == [28, 34 - 21, 0, 0]
        assert_as_alone(results, configs, train, tmp_path)


def test_a_run_asked_for_later_begins_at_a_kept_state(runs, batch, train, results, tmp_path):
    """If its load of experts was counted there; else at its first step."""
    *first, later, new = runs((*LENGTHS, 36))
    batch([*first, later], results)
    lines: list[str] = []
    train(later, results, log=lines.append, keep_weights=True)
    train(new, results, log=lines.append)
    assert [line for line in lines if "resumed" in line] == [
        f"{later.run_id}: resumed at step 24/40, 4 sequences at a time"
    ]
    assert_as_alone(results, [later, new], train, tmp_path)
    dense = runs(LENGTHS, ffn={"kind": "dense", "d_ffn": 16})
    batch(dense[:2], results)
    batch(dense[3:], results, log=lines.append)
    assert "resumed at step 9/40" in lines[-1]
    assert_as_alone(results, dense[3:], train, tmp_path)


def test_states_beyond_the_limit_go_earliest_first(runs, batch, results, monkeypatch):
    monkeypatch.setattr(trunk, "LIMIT", 1.0)
    configs = runs()
    batch(configs, results)
    assert summaries(results, configs)[-1]["shared_steps"] == 24
    folders = results.trunk(configs[0].trunk).iterdir()
    assert [path.name for path in folders if path.is_dir()] == ["24"]


def written(path, configs):
    Orders(runs=tuple(Order(config=config) for config in configs)).write(path)
    return path


@pytest.mark.slow
def test_a_batch_stopped_by_a_signal_goes_on_and_leaves_no_states(
    runs, train, results, started, tmp_path
):
    """With two workers: one waits until the other has left the trunk."""
    configs = runs((40, 60, 80), max_epochs=1000)
    file, folder = written(tmp_path / "runs.json", configs), results.trunk(configs[0].trunk)
    process = started(file, "--workers", "2")
    wait_for(lambda: (folder / "30/latest.json").exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not (folder / "lock").exists()
    process = started(file, "--workers", "2")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    # Whichever carries the trunk on, each of its 60 steps is trained once, and then the decays.
    own = [s["steps"] - s["shared_steps"] for s in summaries(results, configs)]
    assert sum(own) == 60 + 10 + 15 + 20
    assert not folder.exists()
    assert_as_alone(results, configs, train, tmp_path)


@pytest.mark.slow
def test_several_devices_share_a_trunk(runs, results, started, tmp_path):
    configs, alone = runs((12, 20)), Results(tmp_path / "alone")
    words = ("--devices", "2", "--marker", tmp_path / "done")
    for tree, batches in ((results, [configs]), (alone, [[config] for config in configs])):
        for some in batches:
            file = written(tmp_path / "runs.json", some)
            process = started(file, *words, "--results", tree.root)
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    assert [s["shared_steps"] for s in summaries(results, configs)] == [0, 9]
    for config in configs:
        assert record(results, config) == record(alone, config)
