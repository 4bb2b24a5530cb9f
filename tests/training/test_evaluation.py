"""The measurement: bits, and how it is cut."""

import math

import numpy as np
import pytest
import torch

from moelaws.corpus.batches import Validation
from moelaws.model.transformer import Transformer
from moelaws.training.evaluation import evaluate


def test_a_model_without_knowledge_measures_ln_v(configure):
    """A zero output matrix predicts uniformly: ln V nats, log2 V bits a token."""
    config = configure()
    model = Transformer(config.model, 0)
    with torch.no_grad():
        model.unembedding.zero_()
    draw = np.random.default_rng(0)
    held_out = Validation(
        tokens=draw.integers(0, 280, (10, 17)),
        documents=np.repeat(np.arange(5), 2)[:, None].repeat(16, 1),
        target_bytes=np.full((10, 16), 3),
        domains=np.array(["go", "go", "perl", "git", "perl"]),
    )
    evaluation = evaluate(model, held_out, batch=4)
    documents = evaluation.documents
    assert [*documents.domain] == ["go", "go", "perl", "git", "perl"]
    assert [*documents.bytes] == [96] * 5
    bits = documents.nats / math.log(2) / documents.bytes
    assert bits == pytest.approx([math.log2(280) / 3] * 5, rel=1e-6)
    assert evaluation.loss == pytest.approx(math.log(280), rel=1e-6)
    assert evaluation.loss_se == pytest.approx(0, abs=1e-6)
    assert evaluation.bits_per_byte == pytest.approx(math.log2(280) / 3, rel=1e-6)


@pytest.mark.parametrize("batch", [1, 5, 7])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_measurement_does_not_depend_on_how_it_is_cut(configure, precision, batch):
    config = configure(model={"init_std": 0.2})
    model = Transformer(config.model, 0, precision=precision)
    draw = np.random.default_rng(0)
    held_out = Validation(
        draw.integers(0, 280, (12, 17)),
        draw.integers(0, 4, (12, 16)),
        np.ones((12, 16), int),
        np.full(4, ""),
    )
    a, b = evaluate(model, held_out, 12), evaluate(model, held_out, batch)
    assert a.loss == pytest.approx(b.loss, rel=1e-6)
    np.testing.assert_array_equal(a.counts_LE, b.counts_LE)
