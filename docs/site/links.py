"""Links to what is no page of the site: to the gallery that shows it, or shown as paths.

On GitHub such links open a file or a folder of the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

GALLERY = "reference/gallery/"
SHOWN = {"config/studies", "docs/evidence/figures"}  # folders whose content the gallery shows
FENCE = re.compile(r"^(```.*?^```$)", re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(?:#[^)\s]*)?\)")
PAPER_TABLE = re.compile(r"docs/evidence/figures/(\w+)/(\w+)\.md")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    here = posixpath.dirname(page.file.src_uri)
    docs = Path(config.docs_dir)

    def replaced(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        path = posixpath.normpath(posixpath.join(docs.name, here, target))
        if paper_table := PAPER_TABLE.fullmatch(path):
            page_of_study = posixpath.relpath(f"{GALLERY}{paper_table[1]}.md", here or ".")
            return f"[{text}]({page_of_study}#{paper_table[2].lower()})"
        if path in SHOWN:
            return f"[{text}]({posixpath.relpath(f'{GALLERY}index.md', here or '.')})"
        known = files.get_file_from_path(posixpath.relpath(path, docs.name))
        if (known and known.inclusion.is_included()) or not (docs.parent / path).exists():
            return link[0]  # a page, or a link to nothing, which fails the build
        return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"

    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(replaced, part) for part in parts[::2]]
    return "".join(parts)
