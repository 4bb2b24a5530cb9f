"""Data sets through the real ``datasets`` library: in local folders, and on a hub made here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from corpus_helpers import corpus_of, documents
from hub_server import serving

from full_disk import files_of_at_most
from moelaws.corpus.prepare import prepare
from moelaws.corpus.rows import joined
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.spec.base import parse
from moelaws.spec.corpus import Dataset
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from repository import REPOSITORY

COMMIT = "0123456789" * 4
STORIES = [
    f"Story {i}: once upon a time there were {i % 7} bears.\n" * (1 + i % 9) for i in range(90)
]


def write(folder, form, texts, split="train"):
    """A data set as the hub's are: one file a split."""
    folder.mkdir(exist_ok=True)
    table = pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())})
    if form == "parquet":
        pa.parquet.write_table(table, folder / f"{split}.parquet", row_group_size=20)
    elif form == "csv":
        pa.csv.write_csv(table, folder / f"{split}.csv")
    else:
        lines = (json.dumps(row) + "\n" for row in table.to_pylist())
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def prepared(folder, out, vocab_size=300, **setting):
    source = resolve(Dataset(dataset=str(folder), **setting), Path())
    prepare(corpus_of(source, vocab_size, validation=0.2), source, out)
    assert list(out.parent.glob(".*")) == []  # the spooled rows are gone
    return PreparedCorpus.open(out)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_each_row_is_a_document_on_one_side(tmp_path, form):
    texts = [None, *STORIES, "", STORIES[3], STORIES[3]]
    corpus = prepared(write(tmp_path / "set", form, texts), tmp_path / "out")
    train, held_out = documents(corpus, "train"), documents(corpus, "validation")
    assert sorted(train + held_out) == sorted(STORIES)  # a copy is on neither side twice
    assert held_out
    assert corpus.meta["duplicates_dropped"] == 2
    assert corpus.meta["sources"]["rows"] == len(texts)
    assert corpus.meta["sources"]["empty_rows"] == 2


def test_rows_split_as_files_of_the_same_texts_do(tmp_path):
    rows = prepared(write(tmp_path / "set", "parquet", STORIES), tmp_path / "rows")
    for i, text in enumerate(STORIES):
        (tmp_path / f"{i}.txt").write_text(text)
    files = resolve("*.txt", tmp_path)
    prepare(corpus_of(files, validation=0.2), files, tmp_path / "files")
    assert rows.shard_hashes == PreparedCorpus.open(tmp_path / "files").shard_hashes


def test_split_column_and_bytes_choose_the_text(tmp_path):
    folder = write(tmp_path / "set", "jsonl", ["not this"] * 3)
    write(folder, "jsonl", STORIES, split="test")
    corpus = prepared(folder, tmp_path / "out", vocab_size=260, split="test", bytes=2000)
    chosen = documents(corpus, "train") + documents(corpus, "validation")
    assert sorted(chosen) == sorted(STORIES[: len(chosen)])
    size = sum(len(text) for text in chosen)
    assert size <= 2000 < size + len(STORIES[len(chosen)])


def test_a_folders_identity_is_its_content_wherever_it_lies(tmp_path):
    folder = write(tmp_path / "set", "jsonl", STORIES)
    (folder / ".cache").write_text("x")
    first = resolve(Dataset(dataset="set"), tmp_path).identity()
    folder.rename(tmp_path / "moved")
    (tmp_path / "moved" / ".cache").unlink()
    assert resolve(Dataset(dataset="moved"), tmp_path).identity() == first
    assert resolve(Dataset(dataset="moved", bytes=9), tmp_path).identity() != first
    write(tmp_path / "moved", "jsonl", STORIES[1:])
    assert resolve(Dataset(dataset="moved"), tmp_path).identity() != first


def example(name):
    """A data set that docs/corpora.md gives as ready to use, parsed as the configuration."""
    page = (REPOSITORY / "docs/corpora.md").read_text()
    blocks = re.findall(r"```yaml\n(corpus:.*?)```", page, re.S)
    projects = [parse(Project, yaml.safe_load(block), "corpora.md") for block in blocks]
    (choice,) = (p.corpus for p in projects if getattr(p.corpus, "dataset", "") == name)
    assert isinstance(choice, Dataset)
    return choice


def test_the_ready_examples_are_known_before_anything_is_downloaded(tmp_path):
    names = ("roneneldan/TinyStories", "Salesforce/wikitext")
    sources = [resolve(example(name), tmp_path) for name in names]
    assert [source.identity().kind for source in sources] == ["hub", "hub"]
    assert [source.bytes for source in sources] == [10**9, None]


WIKI = """ = First = 

 Text of the first .

 = = Section = =

 x = y in a line .
 = Second = 
 Text of the second .
"""


def test_lines_are_joined_to_articles(tmp_path):
    """As WikiText's rows are: a line each, its newline kept, empty lines empty."""
    rows = [line + "\n" if line else "" for line in WIKI.splitlines()]
    folder = write(tmp_path / "set", "parquet", rows * 30)
    starts = example("Salesforce/wikitext").document_starts
    first, _, second = WIKI.partition(" = Second")
    articles = list(joined(iter(row.encode() for row in rows), starts))
    assert [text.decode() for text in articles] == [first, " = Second" + second]
    corpus = prepared(folder, tmp_path / "out", vocab_size=260, document_starts=starts)
    assert corpus.meta["duplicates_dropped"] == 58
    both = documents(corpus, "train") + documents(corpus, "validation")
    assert sorted(both) == sorted(text.decode() for text in articles)


def test_lines_before_the_first_start_are_a_document_and_the_end_is_kept():
    lines = [b"", b"intro", b"# one", b"a\n", b"# two", b""]
    assert list(joined(iter(lines), "^#")) == [b"\nintro\n", b"# one\na\n", b"# two\n\n"]


@pytest.mark.parametrize(
    ("texts", "setting", "says"),
    [
        (STORIES, {"column": "story"}, "no column 'story'; there are: id, text"),
        (STORIES, {"split": "tset"}, "Bad split: tset. Available splits: ['train']"),
        (STORIES, {"bytes": 5}, "no whole row of text in column 'text' of split 'train': 1 rows"),
        (["", None], {}, "no whole row of text .* 2 rows read, 2 of them empty"),
        (["one", "one"], {}, "single document"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(tmp_path, texts, setting, says):
    folder = write(tmp_path / "set", "parquet", texts)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        prepared(folder, tmp_path / "out" / "corpus", **setting)
    assert list((tmp_path / "out").iterdir()) == []


def call(folder, dataset, **options):
    """``moelaws corpus`` of a data set, in a process of its own."""
    path = folder / "config/config.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"corpus: {json.dumps(dataset)}\nvalidation: 0.2\n")
    command = [sys.executable, "-m", "moelaws", "corpus", "--vocab-size", "300", "--json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path):
    folder = write(tmp_path / "set", "parquet", STORIES)
    (tmp_path / "out").mkdir()
    with files_of_at_most(9000), pytest.raises(UserError, match="cannot be written: File too"):
        prepared(folder, tmp_path / "out" / "corpus")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_the_hub_by_name_and_commit(tmp_path):
    write(tmp_path / "set", "parquet", STORIES)
    write(tmp_path / "set", "parquet", ["held", "out"], split="validation")
    choice = {"dataset": "owner/stories", "commit": COMMIT, "bytes": 15_000}
    with serving(tmp_path / "set", "owner/stories", COMMIT) as address:
        environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache")}
        done = call(tmp_path, choice, env=environment)
        wrong = [
            call(tmp_path, choice | change, env=environment)
            for change in ({"commit": "a" * 40}, {"dataset": "owner/tales"})
        ]
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["corpus"]["source"]["commit"] == COMMIT
    assert data["sources"]["name"] == "owner/stories"
    local = prepared(tmp_path / "set", tmp_path / "local", bytes=15_000)
    hub = {name: file["sha256"] for name, file in data["files"].items()}
    assert local.shard_hashes.items() < hub.items()  # which has the domains, too
    told = (f"Revision '{'a' * 40}' doesn't exist", "'owner/tales' doesn't exist")
    for failed, says in zip(wrong, told, strict=True):
        assert failed.returncode == 2
        assert says in failed.stderr
        assert failed.stderr.count("\n") == 1


@pytest.mark.slow
def test_no_network_is_one_message(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    done = call(tmp_path, {"dataset": "owner/stories", "commit": COMMIT}, env=environment)
    assert done.returncode == 2
    assert "check these and the network, or fetch the data set elsewhere" in done.stderr
    assert done.stderr.count("\n") == 1
