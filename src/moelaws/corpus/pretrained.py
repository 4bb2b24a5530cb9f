"""A pretrained tokenizer's file and what is known of it before anything is tokenised.

Light: the Snakefile asks at every parse, without the ``tokenizers`` library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json


@dataclass(frozen=True)
class Pretrained:
    """A byte-level BPE in the JSON of the ``tokenizers`` library."""

    path: Path
    text: str
    digest: str  # SHA-256 of the file
    vocab_size: int  # its entries and the end of a document, which is an entry of our own

    @classmethod
    def read(cls, path: Path) -> Pretrained:
        """Reads the tokenizer in ``path``.

        Raises:
            UserError: where there is none, or one that is no byte-level BPE or tokenises at random.
        """
        try:
            data = path.read_bytes()
            text = data.decode("utf-8")
            tokenizer = parse_json(text, f"tokenizer: {path}")
            _check(tokenizer, path)
            size = max(_ids(tokenizer)) + 2
        except OSError as error:
            raise UserError(f"tokenizer: {path} cannot be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"tokenizer: {path} is no tokenizer.json of the tokenizers library "
                f"({type(error).__name__}: {str(error)[:60]})"
            ) from None
        return cls(path, text, hashlib.sha256(data).hexdigest(), size)

    def require(self, vocab_size: int) -> None:
        """Raises UserError where a grid or the user asks for another vocabulary."""
        if vocab_size != self.vocab_size:
            raise UserError(
                f"vocab_size is {vocab_size}, but the tokenizer {self.path} makes it "
                f"{self.vocab_size}: it has {self.vocab_size - 1} entries, and the end of a "
                f"document is one more. Write vocab_size: {self.vocab_size}, or leave it out"
            )


def _check(tokenizer: dict[str, Any], path: Path) -> None:
    model = tokenizer["model"]
    kind = model.get("type", "BPE")  # older files leave it out
    if kind != "BPE" or not any(p["type"] == "ByteLevel" for p in _pre_tokenizers(tokenizer)):
        raise UserError(
            f"tokenizer: {path} is a {kind} that is not byte-level, so it does not say which bytes "
            "a token stands for; choose a byte-level BPE, such as GPT-2's or Llama 3's"
        )
    if model.get("dropout"):
        raise UserError(
            f"tokenizer: {path} tokenises at random (dropout is {model['dropout']}); set "
            "dropout to null in it"
        )


def _pre_tokenizers(tokenizer: dict[str, Any]) -> list[dict[str, Any]]:
    outer = tokenizer.get("pre_tokenizer") or {"type": "none"}
    inner: list[dict[str, Any]] = outer.get("pretokenizers", [outer])
    return inner


def _ids(tokenizer: dict[str, Any]) -> Iterator[int]:
    yield from tokenizer["model"]["vocab"].values()
    yield from (added["id"] for added in tokenizer.get("added_tokens") or ())
