"""``moelaws corpus``: text files to token shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.spec.project import Project

if TYPE_CHECKING:
    from moelaws.corpus.sources import Sources
    from moelaws.spec.corpus import Corpus


@click.command(name="corpus")
@project_options
@click.option(
    "--corpus",
    "setting",
    multiple=True,
    help="stdlib, or a path or glob of UTF-8 text files; may be repeated. "
    "[default: the configuration's]",
)
@click.option("--vocab-size", default=512, show_default=True, help="Entries of the BPE.")
@click.option("--out", type=click.Path(path_type=Path), help="[default: results/corpora/ID]")
@json_option
def command(
    project: Project, setting: tuple[str, ...], vocab_size: int, out: Path | None, as_json: bool
) -> None:
    """Prepare the text: learn the tokenizer, write token shards and their hashes.

    A corpus that is already there whole is kept.
    """
    from moelaws.corpus.sources import resolve
    from moelaws.records.layout import Results
    from moelaws.spec.base import parse
    from moelaws.spec.corpus import Corpus

    results = Results()
    sources = resolve(setting or project.corpus, Path())
    data = {
        "source": {"digest": sources.digest(results.corpus("digests.json"))},
        "vocab_size": vocab_size,
        "validation": project.validation,
    }
    corpus = parse(Corpus, data, "moelaws corpus")
    run(corpus, sources, out or results.corpus(corpus.corpus_id), as_json)


def run(corpus: Corpus, sources: Sources, folder: Path, as_json: bool) -> None:
    """Prepare ``corpus`` in ``folder`` under a progress bar and print what is there."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskID,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    from moelaws.corpus.prepare import prepare
    from moelaws.corpus.shards import PreparedCorpus

    labels = {
        "learn": "learning the BPE",
        "train": "tokenising the training text",
        "validation": "tokenising the validation text",
    }
    console = Console(stderr=True)
    bars: dict[str, TaskID] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:

        def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(labels[stage], total=total)
            progress.update(bars[stage], completed=done)

        prepare(corpus, sources, folder, show)
    meta = PreparedCorpus.open(folder, verify=False).meta
    if as_json:
        print_json({"folder": str(folder), **meta})
        return
    splits = ("train", "validation")
    print_table(
        ("split", "documents", "bytes", "tokens", "bytes/token"),
        [
            (s, m["documents"], m["bytes"], m["tokens"], m["bytes"] / m["tokens"])
            for s, m in ((s, meta[s]) for s in splits)
        ],
        f"corpus {meta['corpus_id']} ({meta['sources']['name']}, "
        f"{meta['sources']['files']} files, vocabulary {corpus.vocab_size}) in {folder}",
    )
    if meta["duplicates_dropped"]:
        click.echo(f"exact copies of documents, dropped: {meta['duplicates_dropped']}")
