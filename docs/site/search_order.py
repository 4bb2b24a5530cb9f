"""What the search puts first: pages that explain a word, before those that list all names."""

from __future__ import annotations

from typing import Any

FACTORS = {"reference/api.md": 0.1}  # of a page's score
TAGS = {"advice.md": ["serve"]}  # words that a page explains without a heading of them


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> None:
    path = page.file.src_uri
    if path in FACTORS:
        page.meta["search"] = {"boost": FACTORS[path]}
    if path in TAGS:
        page.meta["tags"] = TAGS[path]
