"""What a run is trained on: the text by content, its tokenizer and its split."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from moelaws.spec.base import Count, Fraction, Frozen, Whole


class Text(Frozen):
    """UTF-8 text files by content: ``digest`` is over the names and bytes of all of them."""

    kind: Literal["text"] = "text"
    digest: str


class Corpus(Frozen):
    """The text, its tokenizer and its split, known before anything is tokenised."""

    source: Text
    # Entries of the byte-level BPE trained on the training documents; 257 hold the bytes and the
    # end of a document.
    vocab_size: Annotated[Count, Field(ge=257)]
    validation: Annotated[Fraction, Field(gt=0, lt=1)] = (
        0.05  # share of the text, by whole documents
    )
    seed: Whole = 0  # of the split and of the documents' order

    @property
    def corpus_id(self) -> str:
        """The corpus' identity, and its folder's name."""
        return self.fingerprint()
