"""What several test files of this folder build on."""

from __future__ import annotations

from collections.abc import Callable

from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import Sources
from moelaws.spec.corpus import Corpus, Text

Prepare = Callable[..., PreparedCorpus]


def corpus_of(sources: Sources, vocab_size: int = 300, **settings: float) -> Corpus:
    """The corpus of ``sources`` as they are now."""
    return Corpus(source=Text(digest=sources.digest()), vocab_size=vocab_size, **settings)
