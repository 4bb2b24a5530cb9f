"""What the search puts first: pages that explain a word, before those that list all names."""

from __future__ import annotations

from typing import Any

FACTORS = {"reference/api.md": 0.1}  # of a page's score


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> None:
    if factor := FACTORS.get(page.file.src_uri):
        page.meta["search"] = {"boost": factor}
