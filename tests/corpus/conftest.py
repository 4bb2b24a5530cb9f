import random

import pytest
from corpus_helpers import corpus_of

from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve


@pytest.fixture
def texts(tmp_path):
    """A folder of forty documents of made-up words."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnoé", k=draw.randint(2, 9))) for _ in range(300)]
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(40):
        lines = [" ".join(draw.choices(words, k=8)) for _ in range(draw.randint(5, 60))]
        (folder / f"{i:02}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def prepared(texts, tmp_path):
    """Prepares the texts as they are now."""

    def make(name="corpus", **settings):
        sources = resolve("*.txt", texts)
        prepare(corpus_of(sources, **settings), sources, tmp_path / name)
        return PreparedCorpus.open(tmp_path / name)

    return make
