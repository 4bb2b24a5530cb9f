"""A question of a task, and task files: JSON lines, an item each.

    {"task": "brackets", "id": "17", "context": "print(x", "choices": [")", "]", "}"], "answer": 0}

``choices`` continue ``context``, spaces included: a model's text is context and choice, one after
the other. Where a question has one choice, a model must produce it (a cloze).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from moelaws.files.atomic import read_page, write_page
from moelaws.spec.base import Frozen, Whole, parse, text_like
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json

TaskName = Annotated[
    str, text_like(r"[A-Za-z0-9][\w.:/-]{0,99}", "a name of letters, digits, and _ . : / -")
]


class Item(Frozen):
    """A question: which of ``choices`` continues ``context``."""

    task: TaskName  # scores are means over a task's items
    id: str  # its name within the task
    context: str | tuple[str, ...]  # the text before each choice, or one text for each
    # Two or more to choose from, or the one to produce.
    choices: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)]
    answer: Whole = 0  # the place of the right choice, from 0
    group: str = ""  # the kind of skill that it tests, such as ``reading comprehension``
    document: str = ""  # items of one document are not independent: standard errors count documents

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        n = len(self.choices)
        if self.answer >= n:
            raise ValueError(f"answer is {self.answer}; the {n} choices count from 0")
        if not all(self.choices):
            raise ValueError("a choice is empty; it must be a text that a model can continue with")
        if isinstance(self.context, tuple) and len(self.context) != n:
            raise ValueError(
                f"{len(self.context)} contexts; it must be one, or one for each choice"
            )
        return self

    @property
    def contexts(self) -> tuple[str, ...]:
        """Returns the text before each choice."""
        if isinstance(self.context, tuple):
            return self.context
        return (self.context,) * len(self.choices)

    @property
    def cluster(self) -> str:
        """Returns the name that items share if they are not independent of each other."""
        return self.document or f"item {self.id}"


def read_items(path: Path) -> list[Item]:
    """Returns the items of a task file, in their order.

    Raises UserError, which names file and line, where it cannot be read, a line is no item, two
    items of a task have one id, or there are none.
    """
    items: dict[tuple[str, str], Item] = {}
    for number, line in enumerate(read_page(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        item = parse(Item, parse_json(line, where), where)
        if (item.task, item.id) in items:
            raise UserError(f"{where}: the task {item.task} has an item {item.id!r} already")
        items[item.task, item.id] = item
    if not items:
        raise UserError(f"{path} has no items; a task file has one on each line (docs/tasks.md)")
    return list(items.values())


def write_items(path: Path, items: Iterable[Item]) -> None:
    """Writes a task file, whose last line is its seal."""
    write_page(path, "".join(item.canonical_json() + "\n" for item in items))


def by_task(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Returns the items of each task, in the order in which tasks and items come."""
    tasks: dict[str, list[Item]] = {}
    for item in items:
        tasks.setdefault(item.task, []).append(item)
    return tasks
