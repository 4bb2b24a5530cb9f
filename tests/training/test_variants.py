"""Every architecture trained for real: stopped anywhere and continued, it is the same run."""

import io
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
import torch
from variants import VARIANTS, run_data

from moelaws.corpus.batches import Batches
from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.grids.expand import Run
from moelaws.model.transformer import Transformer
from moelaws.records.files import read_json
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.run import RunConfig
from moelaws.tables.aggregate import aggregate
from moelaws.tables.parquet import read_table, write_table
from moelaws.tables.schema import COLUMNS
from moelaws.training.loop import Trainer


def trainer(config, folder, micro_batch=None):
    data = Batches(PreparedCorpus.open(folder), config.batch, config.model.context, config.seed)
    model = Transformer(config.model, config.seed, precision=config.precision)
    return Trainer(config, model, data, micro_batch)


def through_a_file(state):
    """What torch.load makes of it."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def outcome(trainer):
    rows = [row[:-1] for row in trainer.history.rows]  # without the time
    return rows, trainer.expert_load.windows, [p.detach() for p in trainer.model.parameters()]


@pytest.mark.parametrize("variant", VARIANTS)
def test_continued_from_any_step_it_is_the_same_run_bit_for_bit(corpus, variant):
    config = parse(RunConfig, run_data(variant, corpus[0].model_dump(), steps=7), "test")
    whole = trainer(config, corpus[1])
    states = []
    whole.run(lambda: states.append(through_a_file(whole.state())))
    expected = outcome(whole)
    for state in states:
        continued = trainer(config, corpus[1])
        continued.restore(state)
        assert continued.run()
        rows, windows, parameters = outcome(continued)
        assert rows == expected[0]
        for found, want in zip([*windows, *parameters], [*expected[1], *expected[2]], strict=True):
            assert torch.equal(found, want)


def test_a_continued_run_keeps_its_micro_batch_unless_a_smaller_one_is_asked_for(corpus):
    data = run_data("jitter, no auxiliary losses", corpus[0].model_dump(), steps=4)
    config = parse(RunConfig, data, "test")
    states = []
    whole = trainer(config, corpus[1], micro_batch=2)
    whole.run(lambda: states.append(through_a_file(whole.state())))
    for asked, used in ((None, 2), (2, 2), (4, 2), (1, 1)):
        continued = trainer(config, corpus[1], asked)
        continued.restore(states[1])
        assert continued.micro_batch == used
        if used == 2:
            continued.run()
            assert outcome(continued)[0] == outcome(whole)[0]


def test_continued_inside_a_window_the_load_is_counted_whole(corpus):
    config = parse(RunConfig, run_data("shared expert", corpus[0].model_dump(), steps=50), "test")
    whole = trainer(config, corpus[1])
    states = []
    whole.run(lambda: whole.step < 6 and states.append(through_a_file(whole.state())))
    for state in states:
        continued = trainer(config, corpus[1])
        continued.restore(state)
        continued.run()
        assert len(continued.expert_load.windows) == len(whole.expert_load.windows)
        for found, want in zip(
            continued.expert_load.windows, whole.expert_load.windows, strict=True
        ):
            assert torch.equal(found, want)


# As `moelaws train`, with a checkpoint after every step; killed after the given one of them.
EVERY_STEP = """
import json, os, signal, sys
from pathlib import Path
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint
from moelaws.training.job import TrainingOptions
from moelaws.training.run import train
left, save = int(sys.argv[3]), checkpoint.save
def save_and_die(*words):
    global left
    save(*words)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save = save_and_die
config = parse(RunConfig, json.loads(sys.stdin.read()), "standard input")
options = TrainingOptions(checkpoint_seconds=0.0)
train(config, Results(Path(sys.argv[1])), Path(sys.argv[2]), options)
"""


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory):
    """The demo's text: the standard library's sources, 512 entries."""
    root = tmp_path_factory.mktemp("stdlib")
    sources = resolve("stdlib", root)
    corpus = Corpus(source=Text(digest=sources.digest()), vocab_size=512, validation=0.1)
    prepare(corpus, sources, root / "corpus")
    return corpus, root / "corpus"


def run_process(config, results, folder, kill_after=0):
    """Train in a process of its own, killed with SIGKILL after so many checkpoints."""
    done = subprocess.run(
        [sys.executable, "-c", EVERY_STEP, str(results.root), str(folder), str(kill_after)],
        input=config.canonical_json(), capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.slow
def test_each_variant_on_the_demo_corpus_killed_once_and_resumed(demo_corpus, tmp_path):
    """Its record is the undisturbed run's, and readable as the table's columns define."""
    corpus, folder = demo_corpus
    killed, whole = Results(tmp_path / "killed"), Results(tmp_path / "whole")
    runs = []
    for i, variant in enumerate(VARIANTS):
        config = parse(RunConfig, run_data(variant, corpus.model_dump()), variant)
        runs.append(Run(config.run_id, config, None))
        code, errors = run_process(config, killed, folder, kill_after=2 + 3 * i)
        assert code == -9, errors
        code, errors = run_process(config, killed, folder)
        assert code == 0, errors
        assert "resumed at step" in errors, variant
        code, errors = run_process(config, whole, folder)
        assert code == 0, errors
        for name in ("history.parquet", "load.parquet"):
            a, b = (r.run(config.run_id) / name for r in (killed, whole))
            assert a.exists() == b.exists()
            if a.exists():
                tables = [pq.read_table(path).to_pydict() for path in (a, b)]
                for table in tables:
                    table.pop("seconds", None)
                assert tables[0] == tables[1], (variant, name)
        a, b = (read_json(r.summary(config.run_id)) for r in (killed, whole))
        for name in ("loss", "loss_se", "bits_per_byte", "train_loss", "balance", "status"):
            assert a[name] == b[name], (variant, name)
    frame = aggregate("variants", "demo", runs, killed)
    write_table(frame, COLUMNS, tmp_path / "variants.parquet")
    table = read_table(tmp_path / "variants.parquet", COLUMNS)
    assert list(table["status"]) == ["completed"] * len(VARIANTS)
    assert table["L"].between(3.0, 6.3).all()
    assert (table["bpb"] > 0).all()
    assert (table["L_se"] > 0).all()
    experts = table["kind"] == "moe"
    assert experts.sum() == len(VARIANTS) - 2
    assert table.loc[experts, "balance_cv"].notna().all()
    assert table.loc[~experts, "balance_cv"].isna().all()
