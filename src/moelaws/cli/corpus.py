"""``moelaws corpus``: text to token shards."""

import signal
from pathlib import Path

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.cli.common import WHOLE, option, out_option
from moelaws.cli.project import project_options
from moelaws.corpus.prepare import prepare, shown_by
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.files.layout import Results
from moelaws.grids.text import choose_corpus, corpus_of, with_vocabulary
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import CONFIG, Project
from moelaws.spec.words import counted

VOCABULARY = 512


@click.command(name="corpus", cls=JsonCommand)
@project_options
@option(
    "--vocab-size",
    f"Entries of the tokenizer. [default: {VOCABULARY}, or the tokenizer file's]",
    int,
)
@option("--hold-out least", "Refuse a text unless more tokens of it are held out.", WHOLE, 0)
@out_option("[default: results/corpora/ID]")
def command(
    project: Project,
    vocab_size: int | None,
    least: int,
    out: Path | None,
) -> Answer:
    """Prepare the project's text: learn the tokenizer, write token shards and their hashes.

    Another text is named by --set, as in --set corpus=stdlib or --set 'corpus=[a.txt, b/*.txt]'. A
    corpus that is already there whole is kept.
    """
    sources = resolve(project.corpus, Path())
    choice = choose_corpus(project, sources)
    vocabulary = {} if vocab_size is None else {"vocab_size": vocab_size}
    corpus = corpus_of(choice, with_vocabulary(vocabulary, choice).get("vocab_size", VOCABULARY))
    folder = out or Results().corpus(corpus.corpus_id)
    # A scheduler ends a job by SIGTERM: like Ctrl-C, it must leave nothing half-made behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with reporting() as report:
        progress = shown_by(report, f"corpus {sources.name}")
        prepare(corpus, sources, folder, progress, choice.pretrained)
    meta = PreparedCorpus.open(folder, training=False).meta
    if (tokens := meta["validation"]["tokens"]) <= least:
        raise UserError(
            f"corpus {meta['corpus_id']} ({sources.name}) holds out {tokens:,} tokens, and a run "
            f"measures its loss on {least:,} and the one before; add text, raise validation in "
            f"{CONFIG}, or lower evaluation_sequences"
        )
    splits, counts = ("train", "validation"), ("documents", "bytes", "tokens")
    text = meta["sources"]
    size = f"{text['rows']} rows" if "rows" in text else f"{text['files']} files"
    table = table_text(
        ("split", *counts, "bytes/token"),
        [(s, *(meta[s][c] for c in counts), meta[s]["bytes"] / meta[s]["tokens"]) for s in splits],
        f"corpus {meta['corpus_id']} ({text['name']}, {size}, vocabulary {corpus.vocab_size}) "
        f"in {folder}",
    )
    copies = (
        f"{counted(meta['duplicates_dropped'], 'exact copy', 'exact copies')} of documents dropped"
    )
    return {"folder": str(folder), **meta}, f"{table}\n{copies}"
