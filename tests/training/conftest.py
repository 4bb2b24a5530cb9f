"""A small prepared corpus, and configurations of runs that take less than a second."""

import random

import pytest
import torch

from moelaws.corpus.prepare import prepare
from moelaws.corpus.sources import resolve
from moelaws.records.layout import Results
from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.run import RunConfig
from moelaws.training import run
from moelaws.training.job import TrainingOptions


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Also where there is a GPU: what is stated here, bit for bit, is stated of the CPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """(identity, folder) of a corpus of sixty documents of made-up words."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 7))) for _ in range(200)]
    for i in range(60):
        lines = (" ".join(draw.choices(words, k=9)) for _ in range(draw.randint(20, 60)))
        (folder / f"{i:02}.txt").write_text("\n".join(lines))
    sources = resolve("*.txt", folder)
    identity = Corpus(source=Text(digest=sources.digest()), vocab_size=280, validation=0.2)
    prepare(identity, sources, folder / "prepared")
    return identity, folder / "prepared"


@pytest.fixture
def configure(corpus):
    """Makes a RunConfig; arguments replace top-level keys, ``ffn`` and ``model`` parts of them."""

    def make(ffn=None, model=None, **changes):
        experts = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}
        data = {
            "model": {
                "n_layers": 2, "d_model": 16, "n_heads": 2, "n_kv": 1, "context": 16,
                "vocab_size": 280, "ffn": ffn or experts, **(model or {}),
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
