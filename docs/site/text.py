"""Markdown out of plain text, for the pages that are generated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):")


def plain(text: str) -> str:
    """``text`` with its marks escaped, so that ``r*`` and ``<tier>`` are read as they stand.

    What stands between backticks stays code.
    """
    parts = re.split(r"(`+[^`]+`+)", " ".join(str(text).split()))
    parts[::2] = [re.sub(r"([*_\[\]\\#])", r"\\\1", p).replace("<", "&lt;") for p in parts[::2]]
    return "".join(parts)


def code(text: object) -> str:
    """``text`` as code, or nothing where it is empty."""
    return f"`{text}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown; columns without any value are left out."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    lines = [[head[i] for i in kept], ["-"] * len(kept), *([row[i] for i in kept] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def docstring(text: str) -> str:
    """A docstring in Google's style as paragraphs and lists."""
    blocks = []
    for block in re.split(r"\n\s*\n", re.sub(r":\w+:`", "`", text).replace("``", "`")):
        first, _, rest = block.partition("\n")
        if section := SECTION.fullmatch(first):
            depth = len(rest) - len(rest.lstrip())
            items = re.split(rf"\n {{{depth}}}(?! )", "\n" + rest)[1:]
            blocks.append(f"*{section[1]}*\n")
            blocks.append("\n".join(_item(item) for item in items) + "\n")
        else:
            blocks.append(plain(block) + "\n")
    return "\n".join(blocks)


def _item(item: str) -> str:
    named = re.fullmatch(r"([\w, *]+): (.*)", item, re.S)
    return f"- `{named[1]}`: {plain(named[2])}" if named else f"- {plain(item)}"
