"""A corpus' identity by content or commit, and what config.yaml may say of it."""

import pytest

from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus, Dataset
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project
from repository import REPOSITORY

COMMIT = "0123456789" * 4
HUB = {"kind": "hub", "name": "owner/stories", "commit": COMMIT}


def corpus(source, **more):
    return parse(Corpus, {"source": source, "vocab_size": 300, **more}, "corpus")


def test_golden_ids():
    """Corpora on disk go by these."""
    assert corpus({"digest": "0" * 64}).corpus_id == "2a695396ab33ffd6"
    assert corpus({"digest": "0" * 64}, tokenizer="1" * 64).corpus_id == "cb3e44b28e3bf398"
    hub = corpus({**HUB, "bytes": "1e9"})
    assert hub.canonical_json() == (
        '{"source":{"bytes":1000000000,"commit":"' + COMMIT + '","kind":"hub",'
        '"name":"owner/stories"},"vocab_size":300}'
    )
    assert hub.corpus_id == "c74327591f4af55e"
    assert corpus({"kind": "folder", "digest": "0" * 64}).corpus_id == "49b5e18675545b21"


def test_all_that_decides_the_text_decides_the_id():
    changes = [
        {}, {"name": "owner/tales"}, {"commit": "a" * 40}, {"subset": "small"}, {"split": "test"},
        {"column": "story"}, {"bytes": 10}, {"document_starts": "^ = "},
    ]  # fmt: skip
    ids = {corpus({**HUB, **change}).corpus_id for change in changes}
    assert len(ids) == len(changes)
    assert corpus({**HUB, "split": "train", "column": "text"}).corpus_id in ids


def test_identities_survive_their_json():
    for source in ({"digest": "0"}, {**HUB, "bytes": 3}, {"kind": "folder", "digest": "0"}):
        known = corpus(source, tokenizer="1")
        assert Corpus.model_validate_json(known.canonical_json()) == known
        assert parse(Corpus, known.model_dump(mode="json"), "x") == known


@pytest.mark.parametrize("setting", ["text/*.txt", ["a.txt", "b.txt"], "stdlib"])
def test_files_in_config(setting):
    corpus = load_project(REPOSITORY, {"corpus": setting}).corpus
    assert corpus == (setting if isinstance(setting, str) else tuple(setting))


def test_a_data_set_in_config():
    data = {"dataset": "owner/stories", "commit": COMMIT, "bytes": "1e9", "subset": None}
    corpus = load_project(REPOSITORY, {"corpus": data}).corpus
    assert corpus == Dataset(dataset="owner/stories", commit=COMMIT, bytes=10**9)


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ({"commit": COMMIT}, "corpus.dataset is missing"),
        ({"dataset": "a/b", "commit": "main"}, "commit is 'main'; it must be the 40 hexadecimal"),
        ({"dataset": "a/b", "commit": COMMIT[:7]}, "a branch or tag moves"),
        ({"dataset": "a/b", "split": "train[:10%]"}, "to use less of it, set bytes"),
        ({"dataset": "a/b", "bytes": 0}, "corpus.bytes is 0; it must be at least 1"),
        ({"dataset": "a/b", "document_starts": "("}, "not a regular expression: missing )"),
    ],
)
def test_mistakes_in_config(corpus, says):
    with pytest.raises(UserError) as caught:
        load_project(REPOSITORY, {"corpus": corpus})
    assert str(caught.value).startswith("command line: ")
    assert says in str(caught.value)
