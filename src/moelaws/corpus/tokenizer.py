"""Byte-level BPE: any text round-trips, and the bytes that each token stands for are known.

The last entry of the vocabulary ends a document. The tokenizer itself does not know this entry, so
no text is ever read as the end of a document. The ``tokenizers`` library is loaded only when text
is tokenised, because each parse of the Snakefile reads the size of a pretrained vocabulary.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moelaws.files.atomic import read_page, write_text
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.from_json import parse_json

BYTES = 256
TOLERATED = 1e-3  # fraction of the text that a pretrained tokenizer may change


class Tokenizer:
    """A byte-level BPE of ``vocab_size`` entries, the last of which is ``end_of_document``."""

    def __init__(self, text: str) -> None:
        """Reads ``text``, a JSON of the ``tokenizers`` library; raises UserError if it is none."""
        from tokenizers import Tokenizer as Backend

        try:
            self._backend = Backend.from_str(text)
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"tokenizer.json is not a tokenizer: {error}") from None
        # Pretrained files may set these, but the whole text must be encoded, and as plain text.
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        entries = self._backend.get_vocab(with_added_tokens=True)
        self.end_of_document: int = max(entries.values()) + 1
        self.vocab_size = self.end_of_document + 1

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Learns the merges from ``texts``; their order makes no difference.

        Raises UserError for a vocabulary larger than the texts can fill; it has 257 or more.
        """
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models, pre_tokenizers, trainers

        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size - 1,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        tokenizer = cls(backend.to_str())
        if tokenizer.vocab_size != vocab_size:
            raise UserError(
                f"vocab_size is {vocab_size}, but the training text is so short that BPE finds "
                f"only {tokenizer.vocab_size} entries; lower vocab_size or add text"
            )
        return tokenizer

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(read_page(path))

    def save(self, path: Path) -> None:
        write_text(path, self._backend.to_str())

    def encode(self, text: str) -> list[int]:
        """Returns the tokens of one text, without an end of document."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, tokens: Sequence[int]) -> str:
        """Returns the text of ``tokens`` without ends of documents; broken UTF-8 is U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", errors="replace")

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Returns the bytes that ``tokens`` stand for."""
        return b"".join(map(self._token_texts.__getitem__, tokens))

    @property
    def token_bytes(self) -> NDArray[np.int64]:
        """Returns how many bytes each token stands for, (V,); 0 for the end of a document."""
        return np.array([len(text) for text in self._token_texts], np.int64)

    @cached_property
    def _token_texts(self) -> list[bytes]:
        texts = [b""] * self.vocab_size
        data = parse_json(self._backend.to_str(), "the tokenizer")
        for entry, token in data["model"]["vocab"].items():
            texts[token] = b"".join(_BYTE[c] if c in _BYTE else c.encode() for c in entry)
        for added in data["added_tokens"]:  # these match the text as they are written
            texts[added["id"]] = added["content"].encode()
        return texts


# Character -> byte of byte-level vocabularies, as GPT-2 defined them
_SHOWN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(BYTES) if byte not in _SHOWN]
_BYTE = {chr(byte): bytes([byte]) for byte in _SHOWN}
_BYTE |= {chr(BYTES + i): bytes([byte]) for i, byte in enumerate(_HIDDEN)}


@dataclass
class Reproduction:
    """How much of a text a pretrained tokenizer changes: the bytes of lines that come back changed.

    A normaliser may drop or rewrite characters, and an incomplete vocabulary may lose them. The
    losses would then be those of another text, and bits per byte would be wrong.
    """

    tokenizer: Tokenizer
    total: int  # bytes of all text
    changed: int = 0

    def check(self, text: str, tokens: Sequence[int]) -> None:
        """Compares a document with its tokens.

        Raises UserError once more than 0.1 % of all text is changed.
        """
        data, decoded = text.encode("utf-8"), self.tokenizer.decode_bytes(tokens)
        if data == decoded:
            return
        before, after = data.split(b"\n"), decoded.split(b"\n")
        if len(before) != len(after):
            before, after = [data], [decoded]
        lines = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        self.changed += sum(max(len(a), len(b)) for a, b in lines)
        if self.changed > TOLERATED * self.total:
            was, now = (line[:60].decode(errors="replace") for line in lines[0])
            raise UserError(
                f"the tokenizer does not reproduce the text: {was!r} becomes {now!r}; more than "
                f"{TOLERATED:.1%} of it would be changed. Choose a tokenizer without a normaliser "
                "and without an added prefix space, or leave tokenizer out to train one"
            )


@dataclass(frozen=True)
class Pretrained:
    """A byte-level BPE in the JSON of the ``tokenizers`` library."""

    path: Path
    text: str
    digest: str  # SHA-256 of the file
    vocab_size: int  # its entries and the end of a document, which is an entry of our own

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the tokenizer in ``path``.

        Raises UserError if there is none, it is not a byte-level BPE, or it tokenises at random.
        """
        try:
            data = read_bytes(path)
            text = data.decode("utf-8")
            tokenizer = parse_json(text, f"tokenizer: {path}")
            _check_kind(tokenizer, path)
            added = [entry["id"] for entry in tokenizer.get("added_tokens") or ()]
            size = max([*tokenizer["model"]["vocab"].values(), *added]) + 2
        except OSError as error:
            raise UserError(f"tokenizer: {path} cannot be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"tokenizer: {path} is no tokenizer.json of the tokenizers library "
                f"({type(error).__name__}: {str(error)[:60]})"
            ) from None
        return cls(path, text, hashlib.sha256(data).hexdigest(), size)

    def require(self, vocab_size: int) -> None:
        """Raises UserError if a grid or the user asks for another vocabulary."""
        if vocab_size != self.vocab_size:
            raise UserError(
                f"vocab_size is {vocab_size}, but the tokenizer {self.path} makes it "
                f"{self.vocab_size}: it has {self.vocab_size - 1} entries, and the end of a "
                f"document is one more. Write vocab_size: {self.vocab_size}, or leave it out"
            )


def _check_kind(tokenizer: dict[str, Any], path: Path) -> None:
    model = tokenizer["model"]
    kind = model.get("type", "BPE")  # older files leave it out
    outer = tokenizer.get("pre_tokenizer") or {"type": "none"}
    inner = outer.get("pretokenizers", [outer])
    if kind != "BPE" or not any(p["type"] == "ByteLevel" for p in inner):
        raise UserError(
            f"tokenizer: {path} is a {kind} that is not byte-level, so it does not say which bytes "
            "a token stands for; choose a byte-level BPE, such as GPT-2's or Llama 3's"
        )
    if model.get("dropout"):
        raise UserError(
            f"tokenizer: {path} tokenises at random (dropout is {model['dropout']}); set "
            "dropout to null in it"
        )
