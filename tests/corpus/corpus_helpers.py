"""What several test files of this folder build on."""

from itertools import pairwise

import numpy as np

from moelaws.corpus.tokenizer import Tokenizer
from moelaws.spec.corpus import Corpus


def corpus_of(sources, vocab_size=300, **settings):
    """The corpus of ``sources`` as they are now."""
    return Corpus(source=sources.identity(), vocab_size=vocab_size, **settings)


def tokens_of(corpus, split):
    """Tokens of each document of "train" or "validation", by the ends of documents alone."""
    shard = getattr(corpus, split)
    ends = np.flatnonzero(shard == corpus.corpus.vocab_size - 1)
    return [shard[a + 1 : b].tolist() for a, b in pairwise([-1, *ends])]


def documents(corpus, split):
    """The texts of a split."""
    tokenizer = Tokenizer.load(corpus.folder / "tokenizer.json")
    return [tokenizer.decode(tokens) for tokens in tokens_of(corpus, split)]
