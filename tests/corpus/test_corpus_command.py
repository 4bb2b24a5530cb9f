from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from moelaws.corpus.shards import PreparedCorpus


@pytest.fixture
def call(texts: Path) -> list[str]:
    """``moelaws corpus`` for a folder with a configuration and the texts in it."""
    (texts.parent / "config").mkdir()
    (texts.parent / "config" / "config.yaml").write_text("corpus: texts/*.txt\nvalidation: 0.1\n")
    return [sys.executable, "-m", "moelaws.cli", "corpus", "--vocab-size", "300"]


def test_json_says_what_was_made(call: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*call, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    data = json.loads(done.stdout)
    folder = tmp_path / data["folder"]
    assert folder == tmp_path / "results" / "corpora" / data["corpus_id"]
    assert data["corpus"]["validation"] == 0.1
    assert PreparedCorpus.open(folder).train_tokens == data["train"]["tokens"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--corpus", "gone.txt"], "gone.txt: no such file"),
        (
            ["--vocab-size", "200"],
            "vocab_size is 200; Input should be greater than or equal to 257",
        ),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(
    call: list[str], tmp_path: Path, options: list[str], says: str
) -> None:
    done = subprocess.run([*call, *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("moelaws: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_two_at_the_same_time_end_well(call: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out" / "corpus"
    both = [
        subprocess.Popen([*call, "--out", out], cwd=tmp_path, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    assert PreparedCorpus.open(out).train_tokens > 0
    assert list(out.parent.iterdir()) == [out]
