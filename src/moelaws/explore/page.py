"""explore.html as one file: the template with its style, scripts, Plotly and data put in."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from importlib.resources import files
from typing import Any

# Scripts share one scope, and each may use those before it when it is read.
SCRIPTS = (
    "decode.js", "elements.js", "store.js", "filter.js", "palette.js", "plots.js", "answers.js",
    "table.js", "scatter.js", "parallel.js", "detail.js", "curves.js", "isoflop.js", "surface.js",
    "laws.js", "studies.js", "main.js",
)  # fmt: skip


def render(data: dict[str, Any]) -> str:
    """Returns the whole page for ``data``, which holds no NaN; it needs no file and no host."""
    from plotly.offline import get_plotlyjs

    page = files("moelaws.explore") / "page"
    parts = {
        "title": html.escape(data["title"]),
        "style": (page / "style.css").read_text(encoding="utf-8"),
        "script": "\n".join((page / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "plotly": _packed(get_plotlyjs()),
        "data": _packed(json.dumps(data, allow_nan=False, separators=(",", ":"))),
    }
    template = (page / "index.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _packed(text: str) -> str:
    # Without a time, the same data give the same file.
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
