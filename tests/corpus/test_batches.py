import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.corpus.batches import Batches, shuffled, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.spec.corpus import Corpus, Text
from moelaws.spec.errors import UserError

CONTEXT = 8


def corpus_of_positions(tokens, starts=(0, 300)):
    """A corpus in which each token is its own position, so that a batch says where it is from."""
    size = max(tokens, starts[-1])
    return PreparedCorpus(
        folder=Path("corpus"),
        corpus=Corpus(source=Text(digest="0"), vocab_size=size),
        meta={"files": {"train.bin": {"sha256": f"{tokens}"}}},
        train=np.arange(tokens, dtype=np.uint16),
        validation=np.arange(starts[-1], dtype=np.uint16),
        validation_starts=np.array(starts),
        validation_domains=np.full(len(starts) - 1, ""),
        token_bytes=np.arange(size) % 7,
    )


def test_an_epoch_is_every_token_once_in_consecutive_windows():
    batches = Batches(corpus_of_positions(1 + 40 * CONTEXT + 3), 4, CONTEXT, seed=0)
    epoch = np.concatenate([batches.next() for _ in range(10)])
    assert epoch.dtype == np.int64
    assert (np.diff(epoch, axis=1) == 1).all()
    targets = epoch[:, 1:].ravel()
    assert (targets != np.arange(1, 1 + 40 * CONTEXT)).any()
    np.testing.assert_array_equal(np.sort(targets), np.arange(1, 1 + 40 * CONTEXT))


def test_epochs_differ_and_follow_the_seed_also_where_a_batch_spans_them():
    corpus = corpus_of_positions(1 + 10 * CONTEXT)

    def epochs(seed):
        batches = Batches(corpus, 4, CONTEXT, seed, max_epochs=2)
        return np.concatenate([batches.next()[:, 0] for _ in range(5)]).reshape(2, 10).tolist()

    first, second = epochs(0)
    assert sorted(first) == sorted(second) == list(range(0, 80, CONTEXT))
    assert first != second
    assert epochs(0) == [first, second]
    assert epochs(1) != [first, second]


def test_the_order_never_changes():
    """Golden: a change here would give every trained run other data."""
    batch = Batches(corpus_of_positions(1 + 10 * CONTEXT), 10, CONTEXT, seed=7).next()
    assert (batch[:, 0] // CONTEXT).tolist() == [8, 4, 1, 6, 3, 2, 7, 5, 9, 0]


@given(
    documents=st.lists(st.lists(st.integers(0, 8), max_size=30), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_shuffling_keeps_every_document_where_it_is_and_what_it_is_made_of(documents, seed):
    END = 9
    text = np.array([token for d in documents for token in (*d, END)][:-1], np.uint16)
    mixed = shuffled(text, END, seed)
    np.testing.assert_array_equal(mixed == END, text == END)
    ends = np.flatnonzero(text == END)
    for before, after in zip(np.split(text, ends), np.split(mixed, ends), strict=True):
        assert sorted(before) == sorted(after)
    np.testing.assert_array_equal(shuffled(text, END, seed), mixed)
    long = np.arange(100, dtype=np.uint16)
    assert (shuffled(long, 255, seed) != shuffled(long, 255, seed + 1)).mean() > 0.9


def test_a_restored_run_goes_on_with_the_batches_it_would_have_seen():
    corpus = corpus_of_positions(1 + 30 * CONTEXT)
    whole = Batches(corpus, 4, CONTEXT, seed=3, max_epochs=4)
    expected = [whole.next() for _ in range(30)]
    stopped = Batches(corpus, 4, CONTEXT, seed=3, max_epochs=4)
    for _ in range(17):
        stopped.next()
    resumed = Batches(corpus, 4, CONTEXT, seed=3, max_epochs=4)
    resumed.restore(json.loads(json.dumps(stopped.state())))
    for tokens in expected[17:]:
        np.testing.assert_array_equal(resumed.next(), tokens)


def test_more_text_than_allowed_is_refused_before_and_during_training():
    batches = Batches(corpus_of_positions(1 + 10 * CONTEXT), 3, CONTEXT, 0, max_epochs=1.2)
    batches.check(4)
    with pytest.raises(UserError, match=r"5 steps of 3 x 8 .* 1.5 passes .* max_epochs is 1.2"):
        batches.check(5)
    for _ in range(4):
        batches.next()
    with pytest.raises(UserError, match="max_epochs"):
        batches.next()
    with pytest.raises(UserError, match="fewer than one context"):
        Batches(corpus_of_positions(CONTEXT), 1, CONTEXT, 0)


@pytest.mark.parametrize("sequences", [1, 3, 7, 31, 37])
def test_held_out_windows_are_apart_and_know_their_documents(sequences):
    starts = (0, 40, 41, 150, 300)
    held_out = validation(corpus_of_positions(10, starts), sequences, CONTEXT)
    assert held_out.tokens.shape == (sequences, CONTEXT + 1)
    targets = held_out.tokens[:, 1:]
    assert len(np.unique(targets)) == sequences * CONTEXT
    for position, document, size in zip(
        targets.flat, held_out.documents.flat, held_out.target_bytes.flat, strict=True
    ):
        assert starts[document] <= position < starts[document + 1]
        assert size == position % 7


def test_too_little_held_out_text_is_refused():
    corpus = corpus_of_positions(10)
    validation(corpus, 37, CONTEXT)  # 299 targets
    with pytest.raises(UserError, match=r"hold 37 sequences of 8; evaluation\.sequences is 38"):
        validation(corpus, 38, CONTEXT)
