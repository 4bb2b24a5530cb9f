"""A small prepared corpus of random words, for tests that train or read a trained model."""

import random
from pathlib import Path

from moelaws.corpus.prepare import prepare
from moelaws.corpus.sources import resolve
from moelaws.records.layout import Results
from moelaws.spec.corpus import Corpus, Text

VOCABULARY = 280


def random_corpus(root: Path) -> tuple[Corpus, Path]:
    """Returns identity and folder, below ``root/results``, of a corpus of sixty documents."""
    texts, draw = root / "texts", random.Random(3)
    texts.mkdir()
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 7))) for _ in range(200)]
    for i in range(60):
        lines = (" ".join(draw.choices(words, k=9)) for _ in range(draw.randint(20, 60)))
        (texts / f"{i:02}.txt").write_text("\n".join(lines))
    sources = resolve("*.txt", texts)
    identity = Corpus(source=Text(digest=sources.digest()), vocab_size=VOCABULARY, validation=0.2)
    folder = Results(root / "results").corpus(identity.corpus_id)
    prepare(identity, sources, folder)
    return identity, folder
