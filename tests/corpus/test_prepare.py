import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from corpus_helpers import corpus_of, documents
from hypothesis import given
from hypothesis import strategies as st

from moelaws.corpus.documents import pieces, split
from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.spec.errors import UserError


def test_shards_hold_every_document_once_whole_and_on_one_side(texts, prepared):
    written = [path.read_text("utf-8") for path in texts.iterdir()]
    (texts / "copy.txt").write_text(written[0], encoding="utf-8")
    (texts / "blank.txt").write_text("")
    corpus = prepared(validation=0.2)
    train, held_out = documents(corpus, "train"), documents(corpus, "validation")
    assert sorted(train + held_out) == sorted(written)
    of_files = [(texts / name).read_text("utf-8") for name in corpus.validation_domains]
    assert of_files == held_out
    meta = corpus.meta
    assert meta["duplicates_dropped"] == 1
    assert meta["train"]["documents"] == len(train)
    assert meta["validation"]["documents"] == len(held_out)
    total = sum(len(text.encode()) for text in written)
    assert meta["train"]["bytes"] + meta["validation"]["bytes"] == total
    assert 0.15 * total < meta["validation"]["bytes"] <= 0.2 * total
    assert corpus.token_bytes[corpus.train].sum() == meta["train"]["bytes"]
    assert len(corpus.train) == meta["train"]["tokens"]
    ends = np.flatnonzero(corpus.validation == corpus.corpus.vocab_size - 1) + 1
    np.testing.assert_array_equal(corpus.validation_starts, [0, *ends])


def test_split_and_order_follow_contents_and_seed_not_names(texts, prepared):
    first = prepared("first")
    for path in list(texts.iterdir()):
        path.rename(texts / f"{99 - int(path.stem)}.txt")
    renamed = prepared("renamed")
    assert renamed.shard_hashes == first.shard_hashes
    assert renamed.corpus != first.corpus
    other = prepared("other", seed=1)
    assert set(documents(other, "validation")) != set(documents(first, "validation"))
    by_name = [path.read_text("utf-8") for path in sorted(texts.iterdir())]
    order = [by_name.index(text) for text in documents(renamed, "train")]
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_files_changed_since_their_digest_are_refused(texts, tmp_path):
    sources = resolve("*.txt", texts)
    corpus = corpus_of(sources)
    (texts / "03.txt").write_text("changed")
    with pytest.raises(UserError, match="text file changed since its digest"):
        prepare(corpus, sources, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_changed_while_it_is_read_is_refused(texts, tmp_path):
    sources = resolve("*.txt", texts)
    corpus = corpus_of(sources)
    train = split(corpus, sources).train
    changed = train.paths[train.records["file"][train.chosen[-1]]]
    changed.write_text("changed")
    with pytest.raises(UserError, match=f"{changed} changed while it was read"):
        list(train)


@pytest.mark.parametrize("name", ["train.bin", "validation.bin", "tokenizer.json"])
def test_damage_is_found_and_mended_by_preparing_again(prepared, name):
    corpus = prepared()
    path = corpus.folder / name
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(UserError, match=f"{name}: .* is damaged"):
        PreparedCorpus.open(corpus.folder)
    if name == "train.bin":
        PreparedCorpus.open(corpus.folder, training=False)
    else:
        with pytest.raises(UserError, match=f"{name}: .* is damaged"):
            PreparedCorpus.open(corpus.folder, training=False)
    path.unlink()
    with pytest.raises(UserError, match=r"is damaged .*No such file.*prepare it again"):
        PreparedCorpus.open(corpus.folder)
    assert prepared().shard_hashes == corpus.shard_hashes
    assert path.read_bytes() == good


def test_a_whole_corpus_is_kept(prepared):
    path = prepared().folder / "train.bin"
    before = path.stat()
    prepared()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_folder_with_other_files_is_never_replaced(texts):
    sources = resolve("*.txt", texts)
    with pytest.raises(UserError, match="no part of a prepared corpus"):
        prepare(corpus_of(sources), sources, texts)
    assert len(list(texts.iterdir())) == 40


@given(st.text("aé\n😀", max_size=300), st.integers(4, 50))
def test_pieces_are_text_within_the_limit_and_add_up(text, limit):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes(b"before" + text.encode() + b"behind")
        with path.open("rb") as file:
            file.seek(len("before"))
            parts = list(pieces(file, len(text.encode()), limit))
    assert "".join(part.decode() for part in parts) == text
    assert all(0 < len(part) <= limit for part in parts)


def test_a_share_too_small_for_any_document_holds_out_the_smallest(texts, prepared):
    corpus = prepared(validation=1e-6)
    smallest = min((path.read_bytes() for path in texts.iterdir()), key=len)
    assert documents(corpus, "validation") == [smallest.decode()]


def word(i):
    letters = str.maketrans("0123456789", "ghijklmnoé")
    return hashlib.sha256(str(i).encode()).hexdigest()[: 2 + i % 7].translate(letters)


def golden_text(i):
    """Lines of words, every fourth of which is followed by an empty one."""
    lines = []
    for j in range(5 + i * 13 % 40):
        words = (word((i * 31 + j * 7 + k) % 211) for k in range(8))
        lines.append(" ".join(words) + ("\n" if j % 4 == 3 else ""))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("pattern", "settings", "train", "held_out"),
    [
        ("[0-9]*.txt", {"vocab_size": 257}, "94494f3d7b1dfd88", "0f3ef2bcaa3c5b6a"),
        (
            "[0-9]*.txt",
            {"vocab_size": 300, "seed": 5, "validation": 0.2},
            "124f515371aa7d5b",
            "9e76540508d2fbfb",
        ),
        ("m*.txt", {"vocab_size": 257}, "d5b34ee524f5c830", "76598d172215142d"),
        ("whole.md", {"vocab_size": 257}, "6cd923512e28fd72", "5949b94d5fb47300"),
    ],
    ids=["files", "seed", "many", "one"],
)
def test_shards_never_change(tmp_path, pattern, settings, train, held_out):
    """Golden: every run on record was trained on what this code made of its text."""
    for i in range(40):
        (tmp_path / f"{i:02}.txt").write_text(golden_text(i), encoding="utf-8")
    (tmp_path / "0copy.txt").write_text(golden_text(3), encoding="utf-8")
    for i in range(80):
        (tmp_path / f"m{i:02}.txt").write_text(golden_text(i + 40), encoding="utf-8")
    whole = "\n\n".join(golden_text(i) for i in range(60))
    (tmp_path / "whole.md").write_text(whole, encoding="utf-8")
    sources = resolve(pattern, tmp_path)
    prepare(corpus_of(sources, **settings), sources, tmp_path / "out")
    hashes = PreparedCorpus.open(tmp_path / "out").shard_hashes
    assert hashes["train.bin"].startswith(train)
    assert hashes["validation.bin"].startswith(held_out)
