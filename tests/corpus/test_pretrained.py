"""Pretrained tokenizer files of the kinds that GPT-2 and Llama 3 have, made here."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from corpus_helpers import corpus_of, documents, tokens_of
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.corpus.tokenizer import Pretrained, Tokenizer
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.spec.base import parse
from moelaws.spec.corpus import Text
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Grid

END = "<|endoftext|>"
LEARNT_FROM = [Path(json.__file__).read_text("utf-8"), "naïve café über\n" * 50]
WORDS = r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"


def gpt2():
    """A byte-level BPE whose special token is an entry of the model too."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"vocab_size": 400, "special_tokens": [END], "show_progress": False}
    trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **options)
    tokenizer.train_from_iterator(LEARNT_FROM, trainer)
    return tokenizer


def llama3():
    """Words by an expression of its own, special tokens behind the vocabulary, one entry unused."""
    tokenizer = gpt2()
    words = pre_tokenizers.Split(tokenizers.Regex(WORDS), "isolated")
    their_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, their_bytes])
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|eot_id|>"])
    tokenizer.add_tokens(["über"])
    return tokenizer


def file_of(tokenizer, path):
    tokenizer.save(str(path))
    return Pretrained.read(path)


def prepared(pretrained, texts, out):
    sources = resolve("*.txt", texts)
    settings = {"vocab_size": pretrained.vocab_size, "tokenizer": pretrained.digest}
    corpus = corpus_of(sources, **settings, validation=0.2)
    prepare(corpus, sources, out, pretrained=pretrained)
    return PreparedCorpus.open(out)


@pytest.mark.parametrize("make", [gpt2, llama3])
def test_shards_are_the_librarys_tokens_and_all_bytes_are_counted(make, texts, tmp_path):
    (texts / "special.txt").write_text(f"One.{END}Two.<|eot_id|> über café \r\n\t{END}")
    library = make()
    library.enable_truncation(5)
    library.enable_padding(length=9)
    pretrained = file_of(library, tmp_path / "some.json")
    corpus = prepared(pretrained, texts, tmp_path / "out")
    assert corpus.corpus.vocab_size == library.get_vocab_size() + 1
    assert corpus.corpus.tokenizer == hashlib.sha256(pretrained.path.read_bytes()).hexdigest()
    assert corpus.shard_hashes["tokenizer.json"] == corpus.corpus.tokenizer
    assert corpus.meta["bytes_changed_by_tokenizer"] == 0
    expected = {path.read_bytes().decode() for path in texts.iterdir()}
    plain = make()
    plain.encode_special_tokens = True
    tokens = []
    for split in ("train", "validation"):
        assert corpus.token_bytes[getattr(corpus, split)].sum() == corpus.meta[split]["bytes"]
        tokens += tokens_of(corpus, split)
    assert sorted(tokens) == sorted(plain.encode(t, add_special_tokens=False).ids for t in expected)


OURS, LLAMA3 = Tokenizer.train(LEARNT_FROM, 400), Tokenizer(llama3().to_str())


@pytest.mark.parametrize("tokenizer", [OURS, LLAMA3], ids=["ours", "Llama 3"])
@given(text=st.text() | st.text("an über()\n\t<|endoftext|>", max_size=100))
def test_any_text_round_trips_through_a_complete_byte_level_file(tokenizer, text):
    tokens = tokenizer.encode(text)
    assert tokenizer.decode_bytes(tokens) == text.encode()
    assert tokenizer.token_bytes[tokens].sum() == len(text.encode())
    assert tokenizer.end_of_document not in tokens


@pytest.mark.parametrize(
    ("part", "changing"),
    [
        ("normalizer", normalizers.Lowercase()),
        ("pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=True)),
    ],
)
def test_a_tokenizer_that_changes_the_text_is_refused(texts, tmp_path, part, changing):
    for path in texts.iterdir():
        path.write_text(path.read_text("utf-8").title(), encoding="utf-8")
    tokenizer = gpt2()
    setattr(tokenizer, part, changing)
    with pytest.raises(UserError, match=r"does not reproduce the text: '.* becomes '.* 0\.1%"):
        prepared(file_of(tokenizer, tmp_path / "some.json"), texts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_rare_change_is_tolerated_and_on_record(texts, tmp_path):
    """Some published files normalise to NFC, which most text is in already."""
    tokenizer = gpt2()
    tokenizer.normalizer = normalizers.NFC()
    rare = "cafe\u0301"
    (texts / "rare.txt").write_text(f"a line\n{rare}\nanother", encoding="utf-8")
    corpus = prepared(file_of(tokenizer, tmp_path / "some.json"), texts, tmp_path / "out")
    assert corpus.meta["bytes_changed_by_tokenizer"] == len(rare.encode())


def test_vocabularies_above_16_bits_round_trip(texts, tmp_path):
    tokenizer = gpt2()
    tokenizer.add_tokens([f"<{i}>" for i in range(65_200)])
    (texts / "large.txt").write_text("<65199> and <7>", encoding="utf-8")
    corpus = prepared(file_of(tokenizer, tmp_path / "some.json"), texts, tmp_path / "out")
    assert corpus.train.dtype == np.uint32
    assert corpus.train.max() == corpus.corpus.vocab_size - 1 == 65_600
    read = documents(corpus, "train") + documents(corpus, "validation")
    assert sorted(read) == sorted(path.read_text("utf-8") for path in texts.iterdir())


def broken(**changes):
    data = json.loads(gpt2().to_str())
    return json.dumps(data | {"model": data["model"] | changes})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not valid JSON: "),
        ("[]", "is no tokenizer.json of the tokenizers library"),
        (broken(type="WordPiece"), "is a WordPiece that is not byte"),
        (broken(dropout=0.1), "tokenises at random"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, text, says):
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"tokenizer: {path} {says}"):
        Pretrained.read(path)


SETTINGS = {
    "context": 16, "n_layers": 1, "n_heads": 1, "d_model": 16, "n_experts": 4, "top_k": 2,
    "d_expert": 16, "batch": 4, "lr": 0.01, "steps": 10,
}  # fmt: skip


def test_a_grid_takes_the_files_vocabulary(tmp_path):
    pretrained = file_of(gpt2(), tmp_path / "some.json")
    choice = CorpusChoice(Text(digest="0"), 0.1, pretrained)

    def runs(**settings):
        grid = {"settings": SETTINGS | settings, "sweeps": [{"axes": {"seed": [0, 1]}}]}
        return expand(parse(Grid, grid, "g.yaml"), choice, "g.yaml, grids.demo")

    for run in runs():
        assert run.config.model.vocab_size == run.config.corpus.vocab_size == 401
        assert run.config.corpus.tokenizer == pretrained.digest
    assert [r.run_id for r in runs()] == [r.run_id for r in runs(vocab_size=401)]
    with pytest.raises(UserError, match=r"vocab_size is 512.* Write vocab_size: 401, or leave it"):
        runs(vocab_size=512)
