"""Writes lists, counts and sizes as people do, and texts so that no page takes them for markup."""

import re
from collections.abc import Iterable

_CONTROLS = {x: f"\\x{x:02x}" for x in (*range(32), *range(127, 160)) if chr(x) not in "\n\t"}


def joined(texts: Iterable[object], word: str = "and") -> str:
    """Returns texts as a list in a sentence: a, b and c."""
    *others, last = map(str, texts)
    return f"{', '.join(others)} {word} {last}" if others else last


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun: 1 run, 12 runs; ``nouns`` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def on_one_line(text: str) -> str:
    """Returns text in which a space stands for each break and each run of spaces."""
    return " ".join(text.split())


def natural(text: str) -> list[str | int]:
    """Returns a key by which names sort as people sort them: F2, F10, F10a."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", text))]


def without_tags(text: str) -> str:
    """Returns text, or Markdown, in which a space keeps a < from beginning a tag of HTML."""
    return re.sub("<(?=[A-Za-z/!?])", "< ", text)


def visible(text: str) -> str:
    """Returns text with escapes such as \\x1b for all by which it could command a terminal."""
    return text.translate(_CONTROLS)


def short(value: float, digits: int = 3) -> str:
    """Returns a size in few characters: 950, 64k, 1.2M, 17B."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if 0.9995 * scale <= value < 9.995e14:
            return f"{value / scale:.{digits}g}{unit}"
    return f"{value:.{digits}g}"
