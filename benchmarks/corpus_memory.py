"""Peak memory and speed of preparing a text, by its size: large files, and many short documents.

    python benchmarks/corpus_memory.py --megabytes 20 200

The text is the Python standard library's, repeated, in each repetition with an eighth of its words
changed, so that the vocabulary grows with the text as it does in nature. Each case is prepared in
a process of its own, whose peak resident memory is measured.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import META
from moelaws.corpus.sources import resolve
from moelaws.corpus.tokenizer import Pretrained
from moelaws.files.atomic import read_json
from moelaws.records.memory import peak_memory
from moelaws.spec.corpus import Corpus, Dataset

FILES = 10
SHORT = 600  # bytes of a short document, about
FORMS = ("files", "rows")


def text(size: int) -> Iterator[str]:
    """Paragraphs of ``size`` bytes in all, no two repetitions alike."""
    paths = resolve("stdlib", Path()).paths
    left, repetition = size, 0
    while True:
        for path in paths:
            for paragraph in changed(path.read_text("utf-8"), repetition).split("\n\n"):
                left -= len(paragraph.encode()) + 2
                if left < 0:
                    return
                yield paragraph + "\n\n"
        repetition += 1


def changed(source: str, repetition: int) -> str:
    def word(match: re.Match[str]) -> str:
        key = match[0] + "abcdefghijklmnopqrstuvwxyz"[repetition % 26] * (repetition > 0)
        return key if crc32(key.encode()) % 8 == 0 else match[0]

    return re.sub("[A-Za-z]{4,}", word, source)


def short(paragraphs: Iterator[str]) -> Iterator[str]:
    document = ""
    for paragraph in paragraphs:
        document += paragraph
        if len(document) >= SHORT:
            yield document
            document = ""


def write(folder: Path, form: str, size: int) -> None:
    if form == "files":
        paragraphs = text(size)
        for number in range(FILES):
            written = 0
            with (folder / f"{number}.txt").open("w", encoding="utf-8") as file:
                while written < size / FILES and (paragraph := next(paragraphs, "")):
                    written += file.write(paragraph)
        return
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(folder / "train.parquet", schema) as writer:
        rows: list[str] = []
        for document in short(text(size)):
            rows.append(document)
            if len(rows) == 1000:
                writer.write_table(pa.table({"text": rows}, schema))
                rows = []
        if rows:
            writer.write_table(pa.table({"text": rows}, schema))


def measure(folder: Path, form: str, vocab_size: int, tokenizer: Path | None) -> None:
    """Prepare the text in ``folder``; prints the result as JSON."""
    began = time.monotonic()
    setting = "*.txt" if form == "files" else Dataset(dataset=str(folder))
    sources = resolve(setting, folder)
    pretrained = Pretrained.read(tokenizer) if tokenizer else None
    corpus = Corpus(
        source=sources.identity(),
        vocab_size=pretrained.vocab_size if pretrained else vocab_size,
        tokenizer=pretrained and pretrained.digest,
    )
    prepare(corpus, sources, folder / "corpus", pretrained=pretrained)
    seconds = time.monotonic() - began
    meta = read_json(folder / "corpus" / META)
    size = sum(meta[split]["bytes"] for split in ("train", "validation"))
    result = {
        "form": form,
        "megabytes": round(size / 1e6, 1),
        "documents": sum(meta[split]["documents"] for split in ("train", "validation")),
        "peak_megabytes": round(peak_memory() / 1e6),
        "megabytes_per_second": round(size / 1e6 / seconds, 2),
    }
    print(json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[20, 200])
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--tokenizer", type=Path, help="a pretrained one, in place of learning")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "FORM"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(Path(args.measure[0]), args.measure[1], args.vocab_size, args.tokenizer)
        return
    results = []
    for form in args.forms:
        for megabytes in args.megabytes:
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder), form, int(megabytes * 1e6))
                command = [sys.executable, __file__, "--vocab-size", str(args.vocab_size)]
                command += ["--tokenizer", str(args.tokenizer)] if args.tokenizer else []
                command += ["--measure", folder, form]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            results.append(json.loads(done.stdout))
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
