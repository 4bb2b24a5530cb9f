"""Lists, sizes and times as people write them."""

from __future__ import annotations

from collections.abc import Iterable


def joined(texts: Iterable[object], word: str = "and") -> str:
    """Returns texts as a list in a sentence: a, b and c."""
    *others, last = map(str, texts)
    return f"{', '.join(others)} {word} {last}" if others else last


def short(value: float, kilo: str = "k") -> str:
    """Returns a size in few signs: 950, 64k, 1.2M, 17B."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, kilo)):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Returns a time as people say it: 80 s, 12 min, 3.5 h, 2 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:,.0f} days"
