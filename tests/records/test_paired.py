"""The paired error of a contrast: against a simulation of documents and by hand."""

import numpy as np
import pyarrow as pa
import pytest

from moelaws.corpus.batches import Validation
from moelaws.files.layout import Results
from moelaws.files.parquet import write_parquet
from moelaws.records.paired import PairedLosses, UnpairedError, paired_losses
from moelaws.spec.errors import UserError
from moelaws.training.evaluation import DocumentLosses, clustered_se

M, RUNS = 150, ("a", "b", "c")
BETTER = np.array([0.0, 0.02, 0.05])  # nats per token that each run is better by


def measured(rng, m=M):
    """Documents of uneven length, hard or easy for all runs, and a little for each run alone."""
    tokens = rng.geometric(1 / 800, m)
    shared = 3 + 0.4 * rng.standard_normal(m)
    own = 0.03 * rng.standard_normal((len(RUNS), m))
    return PairedLosses(RUNS, tokens, (shared - BETTER[:, None] + own) * tokens)


def test_the_error_of_a_difference_is_how_far_it_varies_over_samples_of_documents():
    rng = np.random.default_rng(0)
    samples = [measured(rng) for _ in range(400)]
    contrast = np.array([1, 0, -1])
    differences = [contrast @ sample.losses for sample in samples]
    errors = [float(sample.standard_error(contrast)) for sample in samples]
    assert np.mean(differences) == pytest.approx(0.05, abs=0.001)
    assert np.mean(errors) == pytest.approx(np.std(differences), rel=0.1)
    alone = np.mean([float(sample.standard_error([1, 0, 0])) for sample in samples])
    assert alone > 8 * np.mean(errors)  # what the runs share has gone
    inside = np.abs(np.array(differences) - 0.05) < 1.645 * np.array(errors)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)


def test_alone_it_is_the_clustered_error_that_the_trainer_measures():
    rng = np.random.default_rng(2)
    document = np.sort(rng.integers(0, 9, 400))
    loss_T = rng.normal(3, 1, 400)
    held_out = Validation(document, document, np.ones(400, int), np.full(9, ""))
    own = DocumentLosses.of(loss_T, held_out)
    paired = PairedLosses(("a",), own.tokens, own.nats[None])
    assert paired.losses == pytest.approx([loss_T.mean()])
    assert paired.standard_error([1]) == pytest.approx(clustered_se(loss_T, document))
    one = PairedLosses(("a", "b"), own.tokens[:1], own.nats[None, :1].repeat(2, 0))
    assert np.isnan(one.standard_error([1, -1]))


def test_bars_of_runs_that_vary_alike_add_in_squares_to_the_error_of_a_difference():
    sample = measured(np.random.default_rng(3), 4000)
    bars = sample.errors_among()
    difference = sample.standard_error([1, -1, 0])
    assert np.hypot(bars[0], bars[1]) == pytest.approx(difference, rel=0.05)
    two = PairedLosses(RUNS[:2], sample.tokens, sample.nats[:2])
    assert two.errors_among() == pytest.approx([difference / 2**0.5] * 2)
    assert np.isnan(PairedLosses(RUNS[:1], sample.tokens, sample.nats[:1]).errors_among())


def test_runs_are_paired_where_all_were_measured_on_the_same_documents(tmp_path):
    results, sample = Results(tmp_path), measured(np.random.default_rng(4))
    document = np.arange(M)
    for run, nats in zip(RUNS, sample.nats, strict=True):
        own = DocumentLosses(document, sample.tokens, nats)
        own.write(results.run(run) / "documents.parquet")
    read = paired_losses(results, RUNS)
    np.testing.assert_array_equal(read.covariance, sample.covariance)
    with pytest.raises(UnpairedError, match="run of before has no losses by document"):
        paired_losses(results, ("a", "of before"))
    other = DocumentLosses(document + 1, sample.tokens, sample.nats[0])
    other.write(results.run("other") / "documents.parquet")
    with pytest.raises(UnpairedError, match="runs a and other were not measured on the same"):
        paired_losses(results, ("a", "other"))
    write_parquet(results.run("other") / "documents.parquet", pa.table({"document": document}))
    with pytest.raises(UserError, match="no losses by document: it lacks nats, tokens"):
        paired_losses(results, ("a", "other"))
