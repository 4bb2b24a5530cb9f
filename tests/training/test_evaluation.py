"""The measurement: clustered errors, bits, how it is cut."""

import math

import numpy as np
import pytest
import torch

from moelaws.corpus.batches import Validation
from moelaws.model.transformer import Transformer
from moelaws.training.evaluation import clustered_se, evaluate, sequences_at_once


def test_repeating_each_value_within_its_document_does_not_shrink_the_error():
    values = np.random.default_rng(1).normal(size=50)
    usual = values.std(ddof=1) / math.sqrt(50)
    assert clustered_se(np.repeat(values, 20), np.repeat(np.arange(50), 20)) == pytest.approx(usual)


def test_error_of_uneven_documents_by_hand():
    values, documents = np.array([1.0, 2.0, 3.0, 6.0]), np.array([7, 7, 7, 9])
    # Mean 3; residual sums -3 and 3; sqrt(2 / 1 * 18) / 4.
    assert clustered_se(values, documents) == pytest.approx(1.5)
    assert clustered_se(values, np.zeros(4, int)) is None


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
    )
    evaluation = evaluate(model, held_out, batch=4)
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
        draw.integers(0, 280, (12, 17)), draw.integers(0, 4, (12, 16)), np.ones((12, 16), int)
    )
    a, b = evaluate(model, held_out, 12), evaluate(model, held_out, batch)
    assert a.loss == pytest.approx(b.loss, rel=1e-6)
    np.testing.assert_array_equal(a.counts_LE, b.counts_LE)


@pytest.mark.parametrize(
    ("device", "trained", "context", "sequences"),
    [
        ("cpu", 24 * 512, 512, 8),
        ("cuda", 24 * 512, 512, 96),
        ("cuda", 24 * 512, 2048, 24),  # the same tokens in longer sequences
        ("cuda", 512, 512, 8),
        ("cpu", 8192, 8192, 1),
    ],
)
def test_a_gpu_evaluates_four_times_what_it_trains_on(device, trained, context, sequences):
    assert sequences_at_once(device, trained, context) == sequences
