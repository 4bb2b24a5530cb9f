"""What several test files of this folder build on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import DatasetSource, Sources
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.spec.corpus import Corpus

Prepare = Callable[..., PreparedCorpus]


def corpus_of(sources: Sources | DatasetSource, vocab_size: int = 300, **settings: Any) -> Corpus:
    """The corpus of ``sources`` as they are now."""
    return Corpus(source=sources.identity(), vocab_size=vocab_size, **settings)


def tokens_of(corpus: PreparedCorpus, split: str) -> list[list[int]]:
    """Tokens of each document of "train" or "validation", by the ends of documents alone."""
    shard = getattr(corpus, split)
    ends = np.flatnonzero(shard == corpus.end_of_document)
    return [shard[a + 1 : b].tolist() for a, b in pairwise([-1, *ends])]


def documents(corpus: PreparedCorpus, split: str) -> list[str]:
    """The texts of a split."""
    tokenizer = Tokenizer.load(corpus.folder / "tokenizer.json")
    return [tokenizer.decode(tokens) for tokens in tokens_of(corpus, split)]
