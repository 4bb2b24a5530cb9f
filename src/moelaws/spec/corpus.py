"""What a run is trained on: the text by content or commit, its tokenizer and its split."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from moelaws.spec.base import Count, Filled, Frozen, Inside, Size, Whole, key_of, text_like


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return value


Commit = Annotated[
    str,
    text_like(
        "[0-9a-f]{40}",
        "the 40 hexadecimal digits of a commit: a branch or tag moves, and runs would then share "
        "an identity but not a text",
    ),
]
Split = Annotated[
    str, text_like(r"\w+(\.\w+)*", "the name of one split; to use less of it, set bytes")
]


class Text(Frozen):
    """UTF-8 text files by content: ``digest`` is over the names and bytes of all of them."""

    kind: Literal["text"] = "text"
    digest: str


class Rows(Frozen):
    """The rows of a data set that are used, and what a document is.

    Each row is a document. Where ``document_starts`` is set, each row is a line instead, and a row
    that matches this regular expression anywhere starts the next document.
    """

    subset: str | None = None
    split: Split = "train"
    column: str = "text"
    bytes: Count | None = None  # UTF-8 bytes, in whole rows from the first on; None takes all
    document_starts: Annotated[str, AfterValidator(_pattern)] | None = None


class Dataset(Rows):
    """A data set of the Hugging Face hub by name and commit, or one in a local folder."""

    dataset: str
    commit: Commit | None = None


# stdlib, environment, paths or globs of text files, or a data set
CorpusSetting = str | Filled[str] | Dataset


class HubDataset(Rows):
    """Rows of a data set of the Hugging Face hub; they are known before any download."""

    kind: Literal["hub"]
    name: str
    commit: Commit


class FolderDataset(Rows):
    """Rows of a data set in a local folder: ``digest`` is over the names and bytes of its files."""

    kind: Literal["folder"]
    digest: str


def _kind(source: Any) -> str:
    # A text's kind is a default, which the canonical JSON leaves out.
    return key_of(source, "kind") or "text"


Source = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[HubDataset, Tag("hub")]
    | Annotated[FolderDataset, Tag("folder")],
    Discriminator(_kind),
]


class Corpus(Frozen):
    """The text, its tokenizer and its split, known before anything is tokenised."""

    source: Source
    # Entries of the tokenizer; the last one ends a document, so 257 hold all bytes and that end.
    # Without ``tokenizer`` a byte-level BPE is trained on the training documents.
    vocab_size: Annotated[Size, Field(ge=257)]
    tokenizer: str | None = None  # SHA-256 of a pretrained tokenizer's file
    # The fraction of the text that is held out, in whole documents
    validation: Inside = 0.05
    seed: Whole = 0  # of the split and of the documents' order

    @property
    def corpus_id(self) -> str:
        """Returns the corpus' identity, which is also its folder's name."""
        return self.fingerprint()
