"""Links that lead out of docs/: to what the site has in their place, or shown as paths.

On GitHub such links open a file or a folder of the repository. The site has pages for some of these
folders; for the others it names the path.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

# A file or folder of the repository -> the page of the site that shows what is in it.
PLACES = {
    "config/studies": "reference/gallery/index.md",
    "docs/evidence/figures": "reference/gallery/index.md",
    "src/moelaws/cli": "reference/commands.md",
    "src/moelaws/laws": "reference/laws/index.md",
    "src/moelaws": "reference/api.md",
}
FENCE = re.compile(r"^(```.*?^```$)", re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
PAPER_TABLE = re.compile(r"docs/evidence/figures/(\w+)/(\w+)\.md")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    here = posixpath.dirname(page.file.src_uri)
    docs = Path(config.docs_dir)

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(docs.name, here, target))
        if paper_table := PAPER_TABLE.fullmatch(path):
            path, anchor = "docs/evidence/figures", f"#{paper_table[2].lower()}"
            place = f"reference/gallery/{paper_table[1]}.md"
        else:
            place = PLACES.get(path, "")
        if place:
            return f"[{text}]({posixpath.relpath(place, here or '.')}{anchor})"
        known = files.get_file_from_path(posixpath.relpath(path, docs.name))
        if (known and known.inclusion.is_included()) or not (docs.parent / path).exists():
            return link[0]  # a page, or a link to nothing, which fails the build
        return f"`{path}`" if path.endswith(text.strip("`")) else f"{text} (`{path}`)"

    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(replaced, part) for part in parts[::2]]
    return "".join(parts)
