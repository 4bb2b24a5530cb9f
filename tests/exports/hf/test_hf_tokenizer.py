"""The exported tokenizer: the corpus' tokens for any text, and an end of document beside them."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, processors

from moelaws.corpus.tokenizer import Tokenizer as CorpusTokenizer
from moelaws.exports.hf import tokenizer as exported

TEXT = Path(os.__file__).read_text(encoding="utf-8")
TRAINED = CorpusTokenizer.train([TEXT, Path(re.__file__).read_text("utf-8")], 400)


def pretrained():
    """As published ones are: special tokens of its own, numbers left out, tokens around texts."""
    backend = Tokenizer.from_str(TRAINED._backend.to_str())
    backend.add_special_tokens([AddedToken("<|endoftext|>"), AddedToken("<s>")])
    backend.add_tokens(["lambda"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", backend.token_to_id("<s>"))]
    )
    backend.enable_truncation(8)
    data = json.loads(backend.to_str())
    last = max(data["model"]["vocab"], key=data["model"]["vocab"].get)
    data["model"]["merges"] = [m for m in data["model"]["merges"] if "".join(m) != last]
    data["model"]["vocab"][last] = 450  # above all the others, behind a gap
    return json.dumps(data)


CORPUS = {"trained": TRAINED._backend.to_str(), "pretrained": pretrained()}
# The corpus' tokenizer and the exported one, as the library reads it.
PAIRS = {}
for _name, _text in CORPUS.items():
    _mine = CorpusTokenizer(_text)
    _theirs = Tokenizer.from_str(
        json.dumps(exported.tokenizer(json.loads(_text), _mine.end_of_document))
    )
    # This is what transformers makes of the setting.
    _settings = exported.tokenizer_config(json.loads(_text), context=64)
    _theirs.encode_special_tokens = _settings["split_special_tokens"]
    PAIRS[_name] = (_mine, _theirs)

TEXTS = st.text() | st.text("def lamb():\n\t<|endoftext_|><s> é漢🙂", max_size=200)


@pytest.mark.parametrize("name", PAIRS)
@given(text=TEXTS)
@example(text="a lambda, which is a token that was added")
def test_any_text_has_the_corpus_tokens(name, text):
    mine, theirs = PAIRS[name]
    assert theirs.encode(text).ids == mine.encode(text)


@pytest.mark.parametrize(
    ("name", "text"), [("trained", "<|endoftext|>"), ("pretrained", "<|endoftext_|>")]
)
def test_the_end_of_a_document_is_the_last_entry(name, text):
    mine, theirs = PAIRS[name]
    assert exported.end_of_document_text(json.loads(CORPUS[name])) == text
    assert theirs.token_to_id(text) == mine.end_of_document == mine.vocab_size - 1
    assert theirs.id_to_token(mine.end_of_document) == text
    assert theirs.decode([mine.end_of_document]) == ""


@pytest.mark.parametrize("name", PAIRS)
def test_a_literal_end_is_text_unless_a_reader_asks_otherwise(name):
    mine, theirs = PAIRS[name]
    text = exported.end_of_document_text(json.loads(CORPUS[name]))
    assert mine.end_of_document not in theirs.encode(text).ids
    reader = Tokenizer.from_str(theirs.to_str())
    reader.encode_special_tokens = False
    assert reader.encode(text).ids == [mine.end_of_document]
