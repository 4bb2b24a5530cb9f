"""A small prepared corpus, and configurations of runs that take less than a second."""

import os
import signal
import subprocess
import sys

import pytest
import torch

from moelaws.corpus.batches import Batches
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.layout import Results
from moelaws.model.transformer import Transformer
from moelaws.training import checkpoint, run
from moelaws.training.loop import Trainer
from moelaws.training.plan import TrainingOptions
from moelaws.training.signals import Stopped
from random_corpus import random_corpus, run_of


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Also where there is a GPU: what is stated here, bit for bit, is stated of the CPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """(identity, folder) of a small prepared corpus."""
    return random_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def configure(corpus):
    """Makes a RunConfig; arguments replace top-level keys, ``ffn`` and ``model`` parts of them."""

    def make(ffn=None, model=None, **changes):
        return run_of(corpus[0], {**({"ffn": ffn} if ffn else {}), **(model or {})}, **changes)

    return make


@pytest.fixture
def trainer_of(corpus):
    """Makes the trainer of a configuration, on the corpus."""

    def make(config, micro_batch=None, callbacks=()):
        context, data = config.model.context, PreparedCorpus.open(corpus[1])
        batches = Batches(data, config.batch, context, config.seed)
        model = Transformer(config.model, config.seed, precision=config.precision)
        return Trainer(config, model, batches, micro_batch, callbacks)

    return make


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "results")


@pytest.fixture
def train(results, corpus):
    """Trains a configuration; keywords are those of ``train`` and the training's options."""

    def make(config, results=results, corpus=corpus[1], out=None, log=lambda line: None, **options):
        return run.train(config, results, corpus, TrainingOptions(**options), out, log)

    return make


@pytest.fixture
def stopped(train, monkeypatch):
    """Trains a configuration until a SIGTERM comes after so many steps; it leaves a checkpoint."""
    train_step = Trainer.train_step

    def make(config, steps, **options):
        def signalled(trainer):
            train_step(trainer)
            if trainer.step == steps:
                os.kill(os.getpid(), signal.SIGTERM)

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "train_step", signalled)
            with pytest.raises(Stopped):
                train(config, **options)

    return make


@pytest.fixture
def started(results, corpus):
    """Starts ``moelaws train`` in a process of its own, which does not outlive the test.

    The test's own words come last, so that they may name other results.
    """
    processes = []

    def start(*words, program=("-m", "moelaws"), config=None, **environment):
        where = ["--device", "cpu", "--results", results.root, "--corpus", corpus[1]]
        line = [*program, "train", *where, *([] if config is None else ["-"]), *words]
        how = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        how |= {"text": True, "env": {**os.environ, **environment}}
        process = subprocess.Popen([sys.executable, *map(str, line)], **how)
        process.stdin.write("" if config is None else config.canonical_json())
        process.stdin.close()
        process.stdin = None
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def through_a_file(tmp_path_factory):
    """What a checkpoint makes of a state."""

    def through(state):
        path = tmp_path_factory.mktemp("checkpoint") / "latest.json"
        checkpoint.save(path, {}, state)
        return checkpoint.load(path, {})[0]

    return through
