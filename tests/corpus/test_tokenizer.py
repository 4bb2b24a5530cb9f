import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.corpus.tokenizer import Tokenizer
from moelaws.spec.errors import UserError

TEXTS = [Path(os.__file__).read_text(encoding="utf-8"), Path(re.__file__).read_text("utf-8")]
TOKENIZER = Tokenizer.train(TEXTS, 400)


@given(st.text() | st.text("def self(): \n\t<|endoftext|>", max_size=200))
def test_any_text_round_trips_and_its_bytes_are_counted(text):
    tokens = TOKENIZER.encode(text)
    assert TOKENIZER.decode(tokens) == text
    assert TOKENIZER.token_bytes[tokens].sum() == len(text.encode())
    assert TOKENIZER.end_of_document not in tokens


def test_smallest_vocabulary_is_bytes_and_an_end():
    tokenizer = Tokenizer.train(["any text"], 257)
    assert tokenizer.end_of_document == 256
    assert len(tokenizer.encode("naïve")) == len("naïve".encode())
    np.testing.assert_array_equal(tokenizer.token_bytes, [1] * 256 + [0])


def test_a_vocabulary_that_the_text_cannot_fill_is_refused():
    with pytest.raises(UserError, match=r"finds only 2.. entries; lower vocab_size"):
        Tokenizer.train(["a short text"], 5000)


def test_same_texts_in_any_order_on_any_number_of_threads_give_the_same_tokenizer(tmp_path):
    program = (
        "import os, re, sys; from pathlib import Path\n"
        "from moelaws.corpus.tokenizer import Tokenizer\n"
        "texts = [Path(m.__file__).read_text('utf-8') for m in (re, os)]\n"
        "Tokenizer.train(texts, 400).save(Path(sys.argv[1]))\n"
    )
    threads = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    saved = tmp_path / "other.json"
    subprocess.run(
        [sys.executable, "-c", program, str(saved)], env={**os.environ, **threads}, check=True
    )
    TOKENIZER.save(tmp_path / "mine.json")
    assert saved.read_bytes() == (tmp_path / "mine.json").read_bytes()
    loaded = Tokenizer.load(saved)
    assert loaded.vocab_size == 400
    assert loaded.encode(TEXTS[0]) == TOKENIZER.encode(TEXTS[0])
