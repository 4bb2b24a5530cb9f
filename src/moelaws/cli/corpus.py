"""``moelaws corpus``: text to token shards."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from moelaws.cli.output import json_option, out_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.spec.project import Project

if TYPE_CHECKING:
    from moelaws.corpus.pretrained import Pretrained
    from moelaws.corpus.sources import DatasetSource, Sources
    from moelaws.spec.corpus import Corpus

VOCABULARY = 512


@click.command(name="corpus")
@project_options
@click.option(
    "--corpus",
    "setting",
    multiple=True,
    help="stdlib, environment, or a path or glob of UTF-8 text files; may be repeated. A data set "
    "is set in the configuration, or by --set. [default: the configuration's]",
)
@click.option(
    "--vocab-size",
    type=int,
    help=f"Entries of the tokenizer. [default: {VOCABULARY}, or the tokenizer file's]",
)
@out_option("[default: results/corpora/ID]")
@json_option
def command(
    project: Project,
    setting: tuple[str, ...],
    vocab_size: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Prepare the text: learn the tokenizer, write token shards and their hashes.

    A corpus that is already there whole is kept.
    """
    from moelaws.corpus.sources import resolve
    from moelaws.grids.text import choose_corpus, corpus_of, with_vocabulary
    from moelaws.records.layout import Results

    sources = resolve(setting or project.corpus, Path())
    choice = choose_corpus(project, sources)
    vocabulary = {} if vocab_size is None else {"vocab_size": vocab_size}
    corpus = corpus_of(choice, with_vocabulary(vocabulary, choice).get("vocab_size", VOCABULARY))
    folder = out or Results().corpus(corpus.corpus_id)
    run(corpus, sources, folder, choice.pretrained, as_json)


def run(
    corpus: Corpus,
    sources: Sources | DatasetSource,
    folder: Path,
    pretrained: Pretrained | None,
    as_json: bool,
) -> None:
    """Prepare ``corpus`` in ``folder``, showing how far it is, and print what is there."""
    from moelaws.corpus.prepare import prepare
    from moelaws.corpus.progress import shown_by
    from moelaws.corpus.shards import PreparedCorpus
    from moelaws.records.progress import reporting

    # A scheduler's end of the job is an interruption too: nothing half-made stays behind.
    signal.signal(signal.SIGTERM, _interrupt)
    with reporting() as report:
        progress = shown_by(report, f"corpus {sources.name}")
        prepare(corpus, sources, folder, progress, pretrained)
    meta = PreparedCorpus.open(folder, verify=False).meta
    if as_json:
        print_json({"folder": str(folder), **meta})
        return
    splits = ("train", "validation")
    text = meta["sources"]
    size = f"{text['rows']} rows" if "rows" in text else f"{text['files']} files"
    print_table(
        ("split", "documents", "bytes", "tokens", "bytes/token"),
        [
            (s, m["documents"], m["bytes"], m["tokens"], m["bytes"] / m["tokens"])
            for s, m in ((s, meta[s]) for s in splits)
        ],
        f"corpus {meta['corpus_id']} ({text['name']}, {size}, vocabulary {corpus.vocab_size}) "
        f"in {folder}",
    )
    for count, what in (
        (meta["duplicates_dropped"], "exact copies of documents, dropped"),
        (text.get("empty_rows"), "rows without text, left out"),
        (meta.get("bytes_changed_by_tokenizer"), "bytes of lines that the tokenizer changes"),
    ):
        if count:
            click.echo(f"{what}: {count}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
