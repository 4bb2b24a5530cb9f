"""A small prepared corpus, and configurations of runs that take less than a second."""

import pytest
import torch

from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig
from moelaws.training import checkpoint, run
from moelaws.training.plan import TrainingOptions
from random_corpus import VOCABULARY, random_corpus


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
        experts = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}
        data = {
            "model": {
                "n_layers": 2, "d_model": 16, "n_heads": 2, "n_kv": 1, "context": 16,
                "vocab_size": VOCABULARY, "ffn": ffn or experts, **(model or {}),
            },
            "corpus": corpus[0].model_dump(),
            "steps": 30,
            "batch": 4,
            "balance_group": 2,
            "optimizer": {"lr": 1e-2},
            "evaluation": {"sequences": 64},
            **changes,
        }  # fmt: skip
        return parse(RunConfig, data, "test")

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
def through_a_file(tmp_path_factory):
    """What a checkpoint makes of a state."""

    def through(state):
        path = tmp_path_factory.mktemp("checkpoint") / "latest.json"
        checkpoint.save(path, {}, state)
        return checkpoint.load(path, {})[0]

    return through
