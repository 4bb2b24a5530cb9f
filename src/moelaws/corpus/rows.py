"""The rows of a data set, streamed by the ``datasets`` library into one local file.

The file holds the documents one after another, so that it can be treated like text files.
"""

import logging
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from moelaws.corpus.sources import DatasetSource
from moelaws.spec.errors import UserError

ROWS = 256  # held in memory at once
LONGEST = 1 << 26  # bytes of a document that is joined from rows


@dataclass(frozen=True)
class Spool:
    """The documents of a data set, one after another in one file."""

    name: str
    paths: tuple[Path]
    starts: "array[int]"  # (documents + 1,): where each begins, and the end of the last
    rows: int  # how many rows were read
    empty: int  # how many of them have no text

    @property
    def domains(self) -> tuple[str]:
        """Returns the data set's name, once for the one file."""
        return (self.name,)

    @property
    def bytes(self) -> int:
        return self.starts[-1]

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yields the file, first byte and bytes of each document."""
        for start, end in pairwise(self.starts):
            yield 0, start, end - start


def spool(source: DatasetSource, path: Path, progress: Callable[[int], None]) -> Spool:
    """Writes the text of ``source`` to ``path`` and calls ``progress`` with the bytes so far.

    Raises UserError if the data set cannot be reached or lacks the split or column, the column is
    not text, or there is no text at all, and OSError if ``path`` cannot be written.
    """
    setting = source.setting
    counts = {"rows": 0, "empty": 0}
    starts = array("q", [0])
    rows = _rows(source, counts)
    documents: Iterator[bytes] = filter(None, rows)
    if setting.document_starts is not None:
        documents = joined(rows, setting.document_starts)
    with path.open("wb") as file:
        for document in documents:
            if setting.bytes is not None and starts[-1] + len(document) > setting.bytes:
                break
            file.write(document)
            starts.append(starts[-1] + len(document))
            progress(starts[-1])
    if len(starts) == 1:
        raise UserError(
            f"corpus {source.name}: no whole row of text in column {setting.column!r} of split "
            f"{setting.split!r}: {counts['rows']} rows read, {counts['empty']} of them empty"
        )
    return Spool(source.name, (path,), starts, **counts)


def joined(lines: Iterator[bytes], document_starts: str) -> Iterator[bytes]:
    """Yields documents, joined from rows that are lines; each line gets a newline at its end.

    A line that ``document_starts`` matches anywhere begins a document. Raises UserError if no line
    matches, or none for 64 MiB.
    """
    start = re.compile(document_starts)
    document = bytearray()
    has_start = False
    for line in lines:
        if start.search(line.decode("utf-8")):
            has_start = True
            if document.strip():
                yield bytes(document)
                document.clear()
        document += line if line.endswith(b"\n") else line + b"\n"
        if len(document) > LONGEST:
            has_start = False
            break
    if document and not has_start:
        raise UserError(
            f"corpus: document_starts is {document_starts!r}; it is found in no row of the last "
            f"{len(document)} bytes: a row in which it is found starts a document"
        )
    if document.strip():
        yield bytes(document)


def _rows(source: DatasetSource, counts: dict[str, int]) -> Iterator[bytes]:
    """Yields each row's text as UTF-8, b"" if it has none, and keeps ``counts`` up to date."""
    column = source.setting.column
    try:
        for table in _stream(source).with_format("arrow").iter(batch_size=ROWS):
            if column not in table.column_names:
                raise UserError(
                    f"corpus {source.name}: no column {column!r}; there are: "
                    f"{', '.join(table.column_names)}"
                )
            kind = str(table.schema.field(column).type)
            if kind not in ("string", "large_string", "string_view", "null"):
                raise UserError(
                    f"corpus {source.name}: column {column!r} is of type {kind}, not text. "
                    f"There are: {', '.join(f'{f.name} ({f.type})' for f in table.schema)}"
                )
            for row in table.column(column).to_pylist():
                text = (row or "").encode("utf-8")
                counts["rows"] += 1
                counts["empty"] += not text
                yield text
    except UserError:
        raise
    except StopIteration:  # the library raises it for a data set without rows
        return
    except Exception as error:  # of any kind: the library, the network or the data's format
        raise UserError(_failure(source, error)) from error


def _stream(source: DatasetSource) -> Any:
    try:
        import datasets
    except ImportError:
        raise UserError(
            f"corpus {source.name}: the package datasets is missing; install it: "
            "pip install 'moelaws[train]', or pip install datasets"
        ) from None
    if "torch" not in sys.modules:  # the library would import torch in vain: seconds and 200 MB
        datasets.config.TORCH_AVAILABLE = False
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)  # it raises what it logs of an error
    setting = source.setting
    where = str(source.folder) if source.folder is not None else setting.dataset
    return datasets.load_dataset(
        where, setting.subset, split=setting.split, revision=setting.commit, streaming=True
    )


def _failure(source: DatasetSource, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    keys = {"dataset", "commit", "subset", "split"}
    names = source.setting.model_dump(include=keys, exclude_none=True)
    where = ", ".join(f"{key} {name!r}" for key, name in names.items())
    return (
        f"corpus: {where}: {reason}; check these and the network, or fetch the data set elsewhere "
        "and set dataset to its folder, without commit"
    )
