"""What several test files of this folder build on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import DatasetSource, Sources
from moelaws.spec.corpus import Corpus

Prepare = Callable[..., PreparedCorpus]


def corpus_of(sources: Sources | DatasetSource, vocab_size: int = 300, **settings: Any) -> Corpus:
    """The corpus of ``sources`` as they are now."""
    return Corpus(source=sources.identity(), vocab_size=vocab_size, **settings)
