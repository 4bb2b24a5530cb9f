"""The navigation's place for a folder of generated pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def expand(config: Any, folder: str, names: Iterable[str]) -> None:
    """Put the folder's first page and a page for each name where the navigation has ``folder``."""
    pages = [f"{folder}index.md", *({name: f"{folder}{name}.md"} for name in names)]
    for section in config.nav:
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                for title, target in entry.items():
                    if target == folder:
                        entry[title] = pages
