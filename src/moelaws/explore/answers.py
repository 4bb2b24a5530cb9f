"""What the runs of a tier show, in words that other rules wrote, after a table of what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt

from moelaws.explore.material import Material
from moelaws.explore.runs import Runs
from moelaws.explore.studies import source_of

COLUMNS = (
    *("study", "question", "losses", "runs", "all parameters", "active parameters"),
    *("training tokens", "training FLOPs, 6 N D", "hours of running"),
)


def trained(material: Material, runs: Runs) -> dict[str, Any]:
    """Returns a table of what was run: a row for each study that has runs."""
    rows = []
    for study in material.studies:
        own = runs.frame[[study.study in of.split(", ") for of in runs.frame["study"]]]
        if not len(own):
            continue
        statuses = ", ".join(f"{n:,} {status}" for status, n in Counter(own["status"]).items())
        about = (study.study, study.title, source_of(material, study), statuses)
        spans = (_span(own, name) for name in ("N_total", "N_active", "D"))
        rows.append([*about, *spans, _sum(own, "C_6N", 1), _sum(own, "seconds", 3600)])
    return {"columns": COLUMNS, "rows": rows}


def pages(material: Material) -> Iterator[dict[str, str]]:
    """Yields the pages of claims, laws and outlook as HTML; of the first two, the summary."""
    folder = material.folder
    for path, whole in ((folder.claims, False), (folder.laws, False), (folder.outlook, True)):
        if html := material.read(partial(_html, whole=whole), path):
            yield {"html": html, "href": path.name}


def _html(path: Path, whole: bool) -> str:
    """Returns a page of Markdown, or what stands before its first section, as HTML.

    Markup in the text stays text. Links within the page lead to its file.
    """
    text = path.read_text(encoding="utf-8")
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(text if whole else text.partition("\n## ")[0])
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{int(token.tag[1:]) + 2}"
        for child in token.children or ():
            if str(child.attrs.get("href", "")).startswith("#"):
                child.attrs["href"] = path.name
    return str(parser.renderer.render(tokens, parser.options, {}))


def _span(frame: pd.DataFrame, column: str) -> str:
    """Returns the range of a column; empty where it holds nothing."""
    if column not in frame or not (known := frame[column].dropna().astype(float)).size:
        return ""
    low, high = f"{known.min():.3g}", f"{known.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _sum(frame: pd.DataFrame, column: str, unit: float) -> str:
    return f"{total / unit:.3g}" if column in frame and (total := frame[column].sum()) else ""
