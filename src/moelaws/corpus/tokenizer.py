"""Byte-level BPE: any text round-trips, and how many bytes each token stands for is known.

The last entry of the vocabulary ends a document. The tokenizer itself knows nothing of it, so no
text, whatever it contains, is ever read as the end of a document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moelaws.records.files import write_text
from moelaws.spec.errors import UserError

BYTES = 256
MINIMUM_VOCABULARY = BYTES + 1  # every byte, and the end of a document


class Tokenizer:
    """A byte-level BPE of ``vocab_size`` entries, the last of which is ``end_of_document``."""

    def __init__(self, text: str) -> None:
        """``text`` is the JSON of the ``tokenizers`` library.

        Raises:
            UserError: where it is not such a JSON.
        """
        from tokenizers import Tokenizer as Backend

        try:
            self._backend = Backend.from_str(text)
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"tokenizer.json is not a tokenizer: {error}") from None
        self.end_of_document: int = self._backend.get_vocab_size(with_added_tokens=False)
        self.vocab_size = self.end_of_document + 1

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Tokenizer:
        """Learn the merges from ``texts``; the same texts in any order give the same tokenizer.

        Raises:
            UserError: for a vocabulary below 257, or larger than the texts can fill.
        """
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models, pre_tokenizers, trainers

        check_vocab_size(vocab_size)
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
    def load(cls, path: Path) -> Tokenizer:
        return cls(path.read_text(encoding="utf-8"))

    def save(self, path: Path) -> None:
        write_text(path, self._backend.to_str())

    def encode(self, text: str) -> list[int]:
        """Tokens of one text, without an end of document."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``; ends of documents vanish, broken UTF-8 shows as U+FFFD."""
        text: str = self._backend.decode([t for t in tokens if t != self.end_of_document])
        return text

    @property
    def token_bytes(self) -> NDArray[np.int64]:
        """Bytes that each token stands for, (V,); 0 for the end of a document."""
        # The library writes each byte as one character.
        vocabulary = json.loads(self._backend.to_str())["model"]["vocab"]
        lengths = np.zeros(self.vocab_size, np.int64)
        for entry, token in vocabulary.items():
            lengths[token] = len(entry)
        return lengths


def check_vocab_size(vocab_size: int) -> None:
    """Raises: UserError: below the smallest byte-level vocabulary."""
    if vocab_size < MINIMUM_VOCABULARY:
        raise UserError(
            f"vocab_size is {vocab_size}; a byte-level vocabulary has at least "
            f"{MINIMUM_VOCABULARY} entries (256 bytes and the end of a document)"
        )
