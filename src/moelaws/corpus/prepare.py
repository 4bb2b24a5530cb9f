"""From text files to token shards: tokenizer, train and validation tokens, meta.json."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from moelaws.corpus.documents import Document, split
from moelaws.corpus.shards import BOUNDARIES, META, SHARDS, TOKENIZER, PreparedCorpus, file_record
from moelaws.corpus.sources import Sources
from moelaws.corpus.tokenizer import Tokenizer, check_vocab_size
from moelaws.records.files import write_json
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError

BATCH = 1 << 20  # bytes of text tokenised at once
BPE_TEXT = 1 << 28  # bytes of training text, in its shuffled order, that the BPE learns from

# Called with a stage ("learn", "train", "validation"), bytes of text done, bytes in all.
Progress = Callable[[str, int, int], None]


def prepare(corpus: Corpus, sources: Sources, out: Path, progress: Progress | None = None) -> None:
    """Write tokenizer.json, train.bin, validation.bin, validation_documents.npy and meta.json.

    A folder that is already there whole is kept. The work is done beside ``out`` and renamed, so
    copies that run at the same time end well and ``out`` is never seen half-made. Memory does not
    grow with the text. Shards are little-endian uint16 (uint32 above 65,536 entries), each
    document followed by the end-of-document token.

    Raises:
        UserError: where the sources are not those of ``corpus``, the vocabulary is too small or
            too large for the text, there are not two documents, or the disk is full.
    """
    check_vocab_size(corpus.vocab_size)
    if is_prepared(corpus, out):
        return
    _refuse_foreign(out)
    if sources.digest() != corpus.source.digest:
        raise UserError(
            f"corpus {sources.name}: the files changed since the digest "
            f"{corpus.source.digest[:16]} was taken; call the command again"
        )
    try:
        with _folder_beside(out) as folder:
            _write(corpus, sources, folder, progress or (lambda stage, done, total: None))
            _put_in_place(corpus, folder, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from error


def is_prepared(corpus: Corpus, out: Path) -> bool:
    """Whether ``out`` holds this corpus, whole."""
    if not (out / META).exists():
        return False
    try:
        return PreparedCorpus.open(out).corpus == corpus
    except UserError:
        return False


def _refuse_foreign(out: Path) -> None:
    # A broken corpus is replaced, so nothing else may be in its folder.
    ours = {META, TOKENIZER, BOUNDARIES, *SHARDS.values()}
    foreign = sorted(set(os.listdir(out)) - ours) if out.is_dir() else []
    if foreign:
        raise UserError(
            f"{out}: holds files that are not a prepared corpus ({', '.join(foreign[:3])}); "
            "choose an empty or new folder"
        )


def _write(corpus: Corpus, sources: Sources, folder: Path, progress: Progress) -> None:
    parts = split(corpus, sources)
    tokenizer = Tokenizer.train(_texts_to_learn_from(parts.train, progress), corpus.vocab_size)
    tokenizer.save(folder / TOKENIZER)
    counts: dict[str, Any] = {}
    for name, documents in (("train", parts.train), ("validation", parts.validation)):
        starts = _encode(tokenizer, documents, folder / SHARDS[name], name, progress)
        counts[name] = {
            "documents": len(documents),
            "tokens": int(starts[-1]),
            "bytes": sum(document.size for document in documents),
        }
        if name == "validation":
            np.save(folder / BOUNDARIES, starts)
    import tokenizers

    meta = {
        "corpus": corpus.model_dump(mode="json"),
        "corpus_id": corpus.corpus_id,
        "sources": {"name": sources.name, "files": len(sources.files), "bytes": sources.bytes},
        "duplicates_dropped": parts.duplicates,
        "end_of_document": tokenizer.end_of_document,
        **counts,
        "files": {
            name: file_record(folder / name) for name in (TOKENIZER, *SHARDS.values(), BOUNDARIES)
        },
        "python": platform.python_version(),
        "tokenizers": tokenizers.__version__,
    }
    write_json(folder / META, meta)


def _texts_to_learn_from(documents: list[Document], progress: Progress) -> Iterator[str]:
    total = min(BPE_TEXT, sum(document.size for document in documents))
    done = 0
    for document in documents:
        if done >= BPE_TEXT:
            return
        yield document.text()
        done += document.size
        progress("learn", min(done, total), total)


def _encode(
    tokenizer: Tokenizer, documents: list[Document], path: Path, stage: str, progress: Progress
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Write the tokens of ``documents``; where each starts, and the end, (documents + 1,)."""
    dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
    total = sum(document.size for document in documents)
    starts, done = [0], 0
    with path.open("wb") as file:
        for batch in _batches(documents):
            for tokens in tokenizer.encode_batch([document.text() for document in batch]):
                tokens.append(tokenizer.end_of_document)
                file.write(np.array(tokens, dtype).tobytes())
                starts.append(starts[-1] + len(tokens))
            done += sum(document.size for document in batch)
            progress(stage, done, total)
    return np.array(starts, np.int64)


def _batches(documents: list[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += document.size
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _folder_beside(out: Path) -> Iterator[Path]:
    folder = out.with_name(f".{out.name}.{uuid4().hex[:8]}.tmp")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(corpus: Corpus, folder: Path, out: Path) -> None:
    """Rename ``folder`` to ``out``, unless another process has put the same corpus there."""
    while True:
        try:
            os.rename(folder, out)  # replaces an empty folder, refuses a full one
            return
        except OSError:
            if not out.is_dir():
                raise
        if is_prepared(corpus, out):
            return
        # A broken folder goes out of the way first; a copy that did so before us is no error.
        with _folder_beside(out) as aside:
            try:
                os.rename(out, aside)
            except FileNotFoundError:
                continue
