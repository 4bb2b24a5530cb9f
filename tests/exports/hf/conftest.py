"""A small trained run whose weights were kept."""

import pytest

from exported_models import EXPERTS, SHAPE
from moelaws.files.layout import Results
from moelaws.training import run
from moelaws.training.plan import TrainingOptions
from random_corpus import random_corpus, run_of


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """(identity, results) of a small prepared corpus."""
    root = tmp_path_factory.mktemp("exports")
    identity, _ = random_corpus(root)
    return identity, Results(root / "results")


@pytest.fixture(scope="session")
def trained(corpus):
    """Trains a run of a model with these parts and keeps its weights; returns its configuration."""
    identity, results = corpus

    def train(steps=30, **model):
        shape = SHAPE | {"ffn": EXPERTS, "qk_norm": True, "init_std": 0.02} | model
        config = run_of(identity, shape, steps=steps, evaluation={"sequences": 16})
        options = TrainingOptions(keep_weights=True)
        folder = results.corpus(identity.corpus_id)
        run.train(config, results, folder, options, None, lambda line: None)
        return config

    return train


@pytest.fixture(scope="session")
def config(trained):
    """The configuration of a trained run of experts with QK-norm."""
    return trained()
