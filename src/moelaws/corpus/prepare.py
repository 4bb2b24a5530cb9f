"""Makes token shards of text: tokenizer, train and validation tokens, meta.json."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from moelaws.corpus.documents import Documents, split
from moelaws.corpus.rows import Spool, spool
from moelaws.corpus.shards import BOUNDARIES, DOMAINS, SHARDS, PreparedCorpus, file_record
from moelaws.corpus.sources import DatasetSource, Sources
from moelaws.corpus.tokenizer import Pretrained, Reproduction, Tokenizer
from moelaws.files.atomic import write_json, write_text
from moelaws.files.layout import LOCK, META, TOKENIZER
from moelaws.files.leftovers import discard, sweep, temporaries, temporary
from moelaws.files.lock import acquire, holder
from moelaws.records.progress import Report
from moelaws.spec.corpus import Corpus
from moelaws.spec.errors import UserError

BATCH = 1 << 20  # bytes of text tokenised at once
BPE_TEXT = 1 << 28  # bytes of training text, in its shuffled order, that the BPE learns from

# Called with a stage of STAGES, bytes of text done and in all (None if unknown), and tokens made
Progress = Callable[[str, int, int | None, int], None]

STAGES = {
    "fetch": "reading the data set",
    "index": "looking for documents",
    "words": "counting words for the BPE",
    "merges": "learning the BPE's merges",
    "train": "tokenising the training text",
    "validation": "tokenising the validation text",
}


def prepare(
    corpus: Corpus,
    sources: Sources | DatasetSource,
    out: Path,
    progress: Progress = lambda stage, done, total, tokens: None,
    pretrained: Pretrained | None = None,
) -> None:
    """Writes the tokenizer, tokens of both splits, and what is known of documents, and meta.json.

    A whole corpus at ``out`` is kept. A new one is made in a folder beside ``out``, together with
    the rows of a data set, and then renamed: so processes that prepare it at the same time all
    succeed, and ``out`` is never seen half-made. What killed processes left there is removed.
    Memory grows by some 60 bytes per document, not with the text. Shards are little-endian uint16
    (uint32 above 65,536 entries), and each document ends with the end-of-document token.

    ``pretrained`` is the tokenizer of ``corpus``, if that is not trained on the text.

    Raises UserError if ``sources`` are not those of ``corpus``, a data set cannot be read, the
    vocabulary is too large for the text, there are not two documents, a pretrained tokenizer does
    not reproduce the text, or the disk is full.
    """
    sweep(out.parent)
    # Leftovers of other hosts may be gigabytes, if they copied a data set.
    for path in temporaries(out.parent):
        if (path / LOCK).exists() and not holder(path):
            discard(path)
    if is_prepared(corpus, out):
        return
    # A broken corpus is replaced, so its folder may hold nothing else.
    ours = {META, TOKENIZER, BOUNDARIES, DOMAINS, *SHARDS.values()}
    if out.is_dir() and (foreign := sorted(set(os.listdir(out)) - ours)):
        raise UserError(
            f"{out} holds files that are no part of a prepared corpus ({', '.join(foreign[:3])}); "
            "choose an empty or new folder"
        )
    if sources.identity() != corpus.source:
        raise UserError(
            f"corpus {sources.name}: a text file changed since its digest was taken; call the "
            "command again"
        )
    work = temporary(out)
    try:
        work.mkdir(parents=True)
        with acquire(work):  # processes on other hosts see by the heartbeat that it is in use
            text: Sources | Spool
            if isinstance(sources, Sources):
                text = sources
            else:
                total = sources.bytes
                text = spool(sources, work / "rows", lambda done: progress("fetch", done, total, 0))
            folder = work / "corpus"
            folder.mkdir()
            _write(corpus, text, folder, progress, pretrained)
            _put_in_place(corpus, folder, out, work)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        discard(work)


def shown_by(report: Report, name: str) -> Progress:
    """Returns a ``Progress`` that shows the preparation of corpus ``name`` by ``report``."""

    def progress(stage: str, done: int, total: int | None, tokens: int) -> None:
        of = "" if total is None else f" of {total / 1e6:.1f}"
        note = f"{done / 1e6:.1f}{of} MB"
        report(f"{name}, {STAGES[stage]}", done, total, note, MB=done / 1e6, tokens=tokens)

    return progress


def is_prepared(corpus: Corpus, out: Path) -> bool:
    """Returns whether ``out`` holds this corpus, whole."""
    with suppress(UserError):
        return PreparedCorpus.open(out).corpus == corpus
    return False


def _write(
    corpus: Corpus,
    text: Sources | Spool,
    folder: Path,
    progress: Progress,
    pretrained: Pretrained | None,
) -> None:
    sides = split(corpus, text, lambda done, total: progress("index", done, total, 0))
    if pretrained is None:
        texts = _texts_to_learn_from(sides.train, progress)
        tokenizer, reproduction = Tokenizer.train(texts, corpus.vocab_size), None
        tokenizer.save(folder / TOKENIZER)
    else:
        tokenizer = Tokenizer(pretrained.text)
        reproduction = Reproduction(tokenizer, sides.train.bytes + sides.validation.bytes)
        write_text(folder / TOKENIZER, pretrained.text)
    counts: dict[str, Any] = {}
    for name, documents in (("train", sides.train), ("validation", sides.validation)):
        starts = _encode(tokenizer, documents, folder / SHARDS[name], name, progress, reproduction)
        counts[name] = {
            "documents": len(documents),
            "tokens": int(starts[-1]),
            "bytes": documents.bytes,
        }
        if name == "validation":
            np.save(folder / BOUNDARIES, starts)
            np.save(folder / DOMAINS, documents.domains)
    if reproduction is not None:
        counts["bytes_changed_by_tokenizer"] = reproduction.changed
    if isinstance(text, Sources):
        counted: dict[str, Any] = {"files": len(text.files)}
    else:
        counted = {"rows": text.rows, "empty_rows": text.empty, "datasets": version("datasets")}
    meta = {
        "corpus": corpus.model_dump(mode="json"),
        "corpus_id": corpus.corpus_id,
        "sources": {"name": text.name, "bytes": text.bytes, **counted},
        "duplicates_dropped": sides.duplicates,
        "end_of_document": tokenizer.end_of_document,
        **counts,
        "files": {
            name: file_record(folder / name)
            for name in (TOKENIZER, *SHARDS.values(), BOUNDARIES, DOMAINS)
        },
        "python": platform.python_version(),
        "tokenizers": version("tokenizers"),
    }
    write_json(folder / META, meta)


def _texts_to_learn_from(documents: Documents, progress: Progress) -> Iterator[str]:
    total = min(BPE_TEXT, documents.bytes)
    done = 0
    for text, size in zip(documents, documents.sizes, strict=True):
        if done >= BPE_TEXT:
            break
        yield text
        done += int(size)
        progress("words", min(done, total), total, 0)
    progress("merges", 0, None, 0)


def _encode(
    tokenizer: Tokenizer,
    documents: Documents,
    path: Path,
    stage: str,
    progress: Progress,
    reproduction: Reproduction | None,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Writes the tokens of ``documents``; returns their starts and the end, (documents + 1,)."""
    dtype = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
    total = documents.bytes
    starts = np.zeros(len(documents) + 1, np.int64)
    written = done = 0
    with path.open("wb") as file:
        for texts, size in _batches(documents):
            for text, tokens in zip(texts, tokenizer.encode_batch(texts), strict=True):
                if reproduction is not None:
                    reproduction.check(text, tokens)
                tokens.append(tokenizer.end_of_document)
                file.write(np.array(tokens, dtype).tobytes())
                written += 1
                starts[written] = starts[written - 1] + len(tokens)
            done += size
            progress(stage, done, total, int(starts[written]))
    return starts


def _batches(documents: Documents) -> Iterator[tuple[list[str], int]]:
    """Yields lists of texts to tokenise at once, and how many bytes they have."""
    batch: list[str] = []
    total = 0
    for text, size in zip(documents, documents.sizes, strict=True):
        batch.append(text)
        total += int(size)
        if total >= BATCH:
            yield batch, total
            batch, total = [], 0
    if batch:
        yield batch, total


def _put_in_place(corpus: Corpus, folder: Path, out: Path, work: Path) -> None:
    """Renames ``folder`` to ``out``, unless another process has put this corpus there already."""
    while True:
        try:
            os.rename(folder, out)  # replaces an empty folder and refuses a full one
            return
        except OSError:
            if not out.is_dir():
                raise
        if is_prepared(corpus, out):
            return
        # A broken folder is moved away; another process may have done so before.
        with suppress(FileNotFoundError):
            os.rename(out, temporary(work / "broken"))
