"""``prepare`` killed by SIGKILL: the next call removes what it left, and no more than that."""

import os
import signal
from pathlib import Path

import pytest
from corpus_helpers import corpus_of
from test_datasets import STORIES, write

from killed import killed_at
from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.spec.corpus import Dataset


@pytest.fixture
def rows(tmp_path):
    return resolve(Dataset(dataset=str(write(tmp_path / "set", "parquet", STORIES))), Path())


def kill(rows, out, stage):
    """Prepares the corpus in another process that is killed in ``stage``."""

    def progress(at, done, total, tokens):
        if at == stage and done:
            os.kill(os.getpid(), signal.SIGKILL)

    assert killed_at(-1, lambda: prepare(corpus_of(rows, 300), rows, out, progress))


@pytest.mark.parametrize("stage", ["fetch", "train"])
def test_the_next_call_removes_the_copied_rows(rows, tmp_path, stage):
    out = tmp_path / "out" / "c1"
    kill(rows, out, stage)
    assert list(out.parent.glob(".c1.*.tmp/rows"))
    mine = out.parent / ".c1.mine.tmp"
    mine.mkdir()
    prepare(corpus_of(rows, 300), rows, out)
    assert sorted(out.parent.iterdir()) == [mine, out]
    assert PreparedCorpus.open(out).corpus == corpus_of(rows, 300)


def test_a_kill_between_renames_leaves_nothing(rows, tmp_path):
    point, killed = 0, True
    while killed:
        out = tmp_path / str(point) / "c1"
        killed = killed_at(point, lambda out=out: prepare(corpus_of(rows, 300), rows, out))
        prepare(corpus_of(rows, 300), rows, out)
        assert list(out.parent.iterdir()) == [out]
        point += 1
    assert point > 5
