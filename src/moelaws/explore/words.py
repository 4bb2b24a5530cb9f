"""Numbers and answers in words, for a reader who has never seen the project."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

SCALES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))


def answer(
    heading: str,
    paragraphs: Iterable[str],
    points: Iterable[str] = (),
    table: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns one answer as the page reads it."""
    return {
        "heading": heading,
        "paragraphs": list(paragraphs),
        "points": list(points),
        "table": table,
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> dict[str, Any]:
    """Returns a table whose first ``text`` columns hold words and whose others hold numbers."""
    numeric = [i >= text for i in range(len(columns))]
    return {"columns": list(columns), "rows": [list(row) for row in rows], "numeric": numeric}


def count(n: int, noun: str) -> str:
    """Returns a number with its noun, such as 1 run and 3 runs."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def amount(value: float) -> str:
    """Returns a size in words with three digits: 1.64 million."""
    for scale, word in SCALES:
        if abs(value) >= 0.9995 * scale:
            return f"{value / scale:.3g} {word}" if value < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"


def span(low: float, high: float) -> str:
    """Returns a range of sizes in words; one number where both are the same."""
    return amount(low) if amount(low) == amount(high) else f"{amount(low)} to {amount(high)}"


def interval(low: float, high: float) -> str:
    """Returns an interval in brackets; nothing where it is not known."""
    known = math.isfinite(low) and math.isfinite(high)
    return f" [{amount(low)}, {amount(high)}]" if known else ""


def hours(seconds: float) -> str:
    """Returns a time in the unit that suits it."""
    for size, word in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {word}"
    return f"{seconds:.3g} seconds"


def listed(texts: Sequence[str]) -> str:
    """Returns texts as a list in a sentence: a, b and c."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
