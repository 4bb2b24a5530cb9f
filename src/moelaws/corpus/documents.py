"""Documents of a corpus and their split, which depends on contents and not on files' order."""

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from moelaws.corpus.rows import Spool
from moelaws.corpus.sources import Sources
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError

LARGEST = 1 << 20  # bytes of a document; the limit keeps memory flat
SMALLEST_CUT = 1 << 12
MANY_SPANS = 64  # with this many spans or more, a span is a document

# A document in 40 bytes. The key drawn for it comes first, and numbers are big-endian: so sorting
# the records as bytes, in place, sorts by that key, and sorts copies by their place.
RECORD = np.dtype(
    [("drawn", "V8"), ("digest", "V16"), ("file", ">i4"), ("start", ">i8"), ("size", ">i4")]
)
_pack = struct.Struct(">8s16siqi").pack

# It is called with the bytes of text done and the bytes in all.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents in order, read only when needed; each takes some 50 bytes of memory."""

    paths: Sequence[Path]
    of_files: Sequence[str]  # the domain of each path
    records: NDArray[Any]  # RECORDs of all documents of the corpus
    chosen: NDArray[np.intp]  # (documents,): the places of this split's records

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Returns the bytes of each document, (documents,)."""
        sizes: NDArray[np.int32] = self.records["size"][self.chosen].astype(np.int32)
        return sizes

    @property
    def domains(self) -> NDArray[np.str_]:
        """Returns the domain of each document, (documents,)."""
        domains: NDArray[np.str_] = np.array(self.of_files)[self.records["file"][self.chosen]]
        return domains

    @property
    def bytes(self) -> int:
        return int(self.sizes.sum(dtype=np.int64))

    def __iter__(self) -> Iterator[str]:
        """Yields the text of each document.

        Raises UserError if a file has changed since it was indexed.
        """
        chosen = (self.records[place] for place in self.chosen)
        for number, records in groupby(chosen, lambda record: int(record["file"])):
            with self.paths[number].open("rb") as file:
                for record in records:
                    file.seek(int(record["start"]))
                    data = file.read(int(record["size"]))
                    if hashlib.sha256(data).digest()[:16] != record["digest"].tobytes():
                        raise UserError(
                            f"{file.name} changed while it was read; prepare the corpus again"
                        )
                    yield data.decode("utf-8")  # as its identity has found


@dataclass(frozen=True)
class Split:
    """The documents for training and for validation; no content is on both sides."""

    train: Documents
    validation: Documents
    duplicates: int  # exact copies that were dropped


def split(
    corpus: Corpus, text: Sources | Spool, progress: Progress = lambda done, total: None
) -> Split:
    """Orders documents by a draw from ``corpus.seed`` and their contents, and drops copies.

    Validation takes, in that order, the documents that still fit into ``corpus.validation`` of the
    bytes, or the smallest document if none fits. Raises UserError below two different documents.
    """
    records = _records(corpus.seed, text, progress)
    # NumPy sorts plain bytes in place.
    records.view(np.dtype((np.void, RECORD.itemsize))).sort()
    first = np.ones(len(records), bool)
    first[1:] = records["digest"][1:] != records["digest"][:-1]
    different = np.flatnonzero(first)
    if len(different) < 2:
        raise UserError(
            f"corpus {text.name}: {text.bytes} bytes of text are a single document; "
            "training and validation need one each: add text"
        )
    held_out = _held_out(records["size"][different].astype(np.int32), corpus.validation)
    return Split(
        Documents(text.paths, text.domains, records, different[~held_out]),
        Documents(text.paths, text.domains, records, different[held_out]),
        len(records) - len(different),
    )


def _held_out(sizes: NDArray[Any], fraction: float) -> NDArray[np.bool_]:
    """Returns a mask (documents,) of the documents for validation."""
    held_out = np.zeros(len(sizes), bool)
    room = fraction * int(sizes.sum(dtype=np.int64))
    smallest = int(sizes.min())
    for place, size in enumerate(sizes):
        if size <= room:
            held_out[place] = True
            room -= int(size)
            if room < smallest:
                break
    if not held_out.any():
        held_out[sizes.argmin()] = True
    return held_out


def _records(seed: int, text: Sources | Spool, progress: Progress) -> NDArray[Any]:
    """Returns a record for each document, (documents,); empty spans have none.

    A span is a document, but large spans, and those of a corpus with few, are cut at empty lines.
    """
    limit = LARGEST
    if len([*islice(text.spans(), MANY_SPANS)]) < MANY_SPANS:
        limit = max(SMALLEST_CUT, min(LARGEST, text.bytes // 1024))
    records = bytearray()
    done = 0
    for number, spans in groupby(text.spans(), itemgetter(0)):
        with text.paths[number].open("rb") as file:
            for _, start, size in spans:
                file.seek(start)
                for piece in pieces(file, size, limit):
                    digest = hashlib.sha256(piece)
                    drawn = hashlib.sha256(f"{seed}:{digest.hexdigest()}".encode())
                    key = drawn.digest()[:8]
                    records += _pack(key, digest.digest()[:16], number, start, len(piece))
                    start += len(piece)
                done += size
                progress(done, text.bytes)
    return np.frombuffer(records, RECORD) if records else np.empty(0, RECORD)


def pieces(file: BinaryIO, size: int, limit: int) -> Iterator[bytes]:
    """Yields the next ``size`` bytes of a UTF-8 file in pieces of at most ``limit`` bytes.

    A piece ends after an empty line if there is one in its second half.
    """
    buffer = file.read(min(limit + 1, size))
    left = size - len(buffer)
    while len(buffer) > limit:
        cut = _cut(buffer, limit)
        yield buffer[:cut]
        fresh = file.read(min(cut, left))
        left -= len(fresh)
        buffer = buffer[cut:] + fresh
    if buffer:
        yield buffer


def _cut(buffer: bytes, limit: int) -> int:
    for separator in (b"\n\n", b"\n"):
        place = buffer.rfind(separator, limit // 2, limit)
        if place >= 0:
            return place + len(separator)
    cut = limit
    while buffer[cut] & 0xC0 == 0x80:  # inside a character
        cut -= 1
    return cut
