import json
import signal
import subprocess
import sys

import pytest

from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.tokenizer import Tokenizer
from repository import moelaws
from waiting import wait_for

COMMAND = (sys.executable, "-m", "moelaws")


@pytest.fixture
def call(texts):
    """The words of ``moelaws corpus`` in a folder with a configuration and the texts in it."""
    (texts.parent / "config").mkdir()
    (texts.parent / "config" / "config.yaml").write_text("corpus: texts/*.txt\nvalidation: 0.1\n")
    return ["corpus", "--vocab-size", "300"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--vocab-size", "200"], "vocab_size is 200; it must be at least 257"),
        (["--hold-out", "1000000"], "and a run measures its loss on 1,000,000 and the one before"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(call, tmp_path, options, says):
    done = moelaws(*call, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("moelaws: ")
    assert says in done.stderr


@pytest.mark.slow
def test_two_at_the_same_time_end_well(call, tmp_path):
    out = tmp_path / "out" / "corpus"
    both = [
        subprocess.Popen([*COMMAND, *call, "--out", out], cwd=tmp_path, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    assert len(PreparedCorpus.open(out).train) > 0
    assert list(out.parent.iterdir()) == [out]


def test_a_tokenizer_file_gives_the_vocabulary(call, texts, tmp_path):
    """A file of 400 entries, beside the configuration; the end of a document is one more."""
    trained = Tokenizer.train([path.read_text("utf-8") for path in texts.iterdir()], 401)
    trained.save(tmp_path / "tokenizer.json")
    options = ["--set", "tokenizer=tokenizer.json", "--json"]
    done = moelaws(call[0], *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["corpus"]["vocab_size"] == 401
    assert data["folder"] == f"results/corpora/{data['corpus_id']}"
    assert len(PreparedCorpus.open(tmp_path / data["folder"]).train) == data["train"]["tokens"]
    assert data["files"]["tokenizer.json"]["sha256"] == data["corpus"]["tokenizer"]
    done = moelaws(*call, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "vocab_size is 300, but the tokenizer tokenizer.json makes it 401" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(call, tmp_path, number):
    out = tmp_path / "out" / "corpus"
    command = [*COMMAND, *call, "--set", "corpus=stdlib", "--vocab-size", "1000", "--out", out]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A background job of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: list(tmp_path.glob("out/.corpus.*.tmp")))
    process.send_signal(number)
    _, errors = process.communicate()
    assert (process.returncode, errors.strip()) == (130, "moelaws: interrupted")
    assert list((tmp_path / "out").iterdir()) == []
