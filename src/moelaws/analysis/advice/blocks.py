"""Blocks of a page: sentences, items of a list and tables, and what they are as Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moelaws.spec.words import without_tags


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


Block = str | Table  # a text that begins with a dash is an item of a list


def markdown(page: Iterable[Block]) -> str:
    """Returns blocks as Markdown, in which items that follow each other are one list."""
    text, listed = "", False
    for block in page:
        item = isinstance(block, str) and block.startswith("- ")
        if isinstance(block, Table):
            lines = [block.columns, ["-", *["-:"] * (len(block.columns) - 1)], *block.rows]
            block = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
        if block:
            text += f"{block}\n" if item and listed else f"\n{block}\n"
            listed = item
    return without_tags(text.lstrip("\n"))
