"""List what a built site would load from another host; exit 1 if there is anything.

    python .ci/site_requests.py SITE

Read are the tags, inline styles and style sheets that make a browser load something. Material's
scripts can load two things more, a diagram's renderer and a repository's stars; pages that would
make them do so are listed too.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADS = {"src", "srcset", "poster", "data", "action"}
ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.I)
STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s;]+)", re.I)


class Page(HTMLParser):
    """Collects the addresses on other hosts that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found = STYLE.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for name, value in given.items():
            loads = name in LOADS or (tag in ("link", "image", "use") and "href" in name)
            parts = value.split(",") if name == "srcset" else [value]
            self.found += [part.strip() for part in parts if loads and ELSEWHERE.match(part)]
        if (
            "mermaid" in given.get("class", "").split()
            or given.get("data-md-component") == "source"
        ):
            self.found.append(
                f"<{tag} class={given.get('class')!r}>, for which a script loads more"
            )


def requests(site: Path) -> list[str]:
    """Each address on another host, behind the file that loads it."""
    pages = {page: Page(page.read_text()).found for page in sorted(site.rglob("*.html"))}
    pages |= {sheet: STYLE.findall(sheet.read_text()) for sheet in sorted(site.rglob("*.css"))}
    if not any(page.suffix == ".html" for page in pages):
        sys.exit(f"{site}: no page there; build the site first")
    return [f"{page.relative_to(site)}: {url}" for page, found in pages.items() for url in found]


if __name__ == "__main__":
    found = requests(Path(sys.argv[1]))
    print("\n".join(found) or "No page loads anything from another host.")
    sys.exit(bool(found))
