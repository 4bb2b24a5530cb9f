"""Documents of a corpus and their split: by content alone, so the files' order means nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moelaws.corpus.sources import Sources
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError

LARGEST = 1 << 20  # bytes of a document, so that memory stays flat
SMALLEST_CUT = 1 << 12
MANY_FILES = 64  # from here on a file is a document


@dataclass(frozen=True)
class Document:
    """Bytes [start, start + size) of a file, by their SHA-256."""

    path: Path
    start: int
    size: int
    digest: str

    def text(self) -> str:
        """Read it again.

        Raises:
            UserError: when the file has changed since it was indexed.
        """
        with self.path.open("rb") as file:
            file.seek(self.start)
            data = file.read(self.size)
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise UserError(f"{self.path}: changed while it was read; prepare the corpus again")
        return data.decode("utf-8")


@dataclass(frozen=True)
class Split:
    """Documents of both sides; no content is on both."""

    train: list[Document]
    validation: list[Document]
    duplicates: int  # exact copies that were dropped


def split(corpus: Corpus, sources: Sources) -> Split:
    """Documents in an order drawn from ``corpus.seed`` and their contents; copies are dropped.

    Validation is filled, in that order, with documents that still fit into
    ``corpus.validation`` of the bytes; it gets the smallest document where none fits.

    Raises:
        UserError: where there are not two different documents.
    """
    different: dict[str, Document] = {}
    total = 0
    for document in index(sources):
        total += 1
        different.setdefault(document.digest, document)
    if len(different) < 2:
        raise UserError(
            f"corpus {sources.name}: {sources.bytes} bytes of text are a single document; "
            "training and validation need one each: add text files"
        )

    def drawn(document: Document) -> str:
        return hashlib.sha256(f"{corpus.seed}:{document.digest}".encode()).hexdigest()

    order = sorted(different.values(), key=drawn)
    room = corpus.validation * sum(document.size for document in order)
    held_out: list[Document] = []
    for document in order:
        if document.size <= room:
            held_out.append(document)
            room -= document.size
    if not held_out:
        held_out = [min(order, key=lambda document: document.size)]
    chosen = {document.digest for document in held_out}
    train = [document for document in order if document.digest not in chosen]
    return Split(train, held_out, total - len(different))


def index(sources: Sources) -> Iterator[Document]:
    """The documents of all files; empty files have none.

    A file is a document. Large files, and the files of a corpus that has few of them, are cut
    at empty lines.
    """
    few = max(SMALLEST_CUT, min(LARGEST, sources.bytes // 1024))
    limit = LARGEST if len(sources.files) >= MANY_FILES else few
    for _, path in sources.files:
        start = 0
        for piece in pieces(path, limit):
            yield Document(path, start, len(piece), hashlib.sha256(piece).hexdigest())
            start += len(piece)


def pieces(path: Path, limit: int) -> Iterator[bytes]:
    """A UTF-8 file in pieces of at most ``limit`` bytes, cut at an empty line if there is one."""
    with path.open("rb") as file:
        buffer = file.read(limit + 1)
        while len(buffer) > limit:
            cut = _cut(buffer, limit)
            yield buffer[:cut]
            buffer = buffer[cut:] + file.read(cut)
        if buffer:
            yield buffer


def _cut(buffer: bytes, limit: int) -> int:
    for separator in (b"\n\n", b"\n"):
        found = buffer.rfind(separator, limit // 2, limit)
        if found >= 0:
            return found + len(separator)
    cut = limit
    while buffer[cut] & 0xC0 == 0x80:  # inside a character
        cut -= 1
    return cut
