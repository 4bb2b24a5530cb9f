"""explore.html as one file: the template with its style, scripts, Plotly and data put in."""

from __future__ import annotations

import html
import re
from importlib.resources import files
from typing import Any

from moelaws.explore.encode import packed, to_json
from moelaws.spec.errors import UserError

# Scripts share one scope, and each may use those before it when it is read.
SCRIPTS = (
    "decode.js", "elements.js", "store.js", "filter.js", "palette.js", "plots.js", "answers.js",
    "table.js", "scatter.js", "parallel.js", "detail.js", "curves.js", "isoflop.js", "surface.js",
    "laws.js", "studies.js", "main.js",
)  # fmt: skip


def render(data: dict[str, Any]) -> str:
    """Returns the whole page for what ``gather.gather`` returned; it needs no file and no host."""
    page = files("moelaws.explore") / "page"
    parts = {
        "title": html.escape(data["title"]),
        "style": (page / "style.css").read_text(encoding="utf-8"),
        "script": "\n".join((page / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "plotly": packed(_plotly()),
        "data": packed(to_json(data)),
    }
    template = (page / "index.html").read_text(encoding="utf-8")
    # In one pass: braces in a part stay what they are.
    return re.sub(r"\{\{(\w+)\}\}", lambda field: parts[field[1]], template)


def _plotly() -> str:
    """Returns the text of plotly.min.js, which draws the page's plots."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UserError(
            "the page needs the package plotly, which is not installed here: `pip install plotly`"
        ) from None
    return str(get_plotlyjs())
