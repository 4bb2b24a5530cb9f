"""Writes lists, counts and sizes as people do, and reads numbers that people wrote."""

import re
from collections.abc import Iterable

# A comma only separates thousands: 1,5 may mean 1.5, so that it is no number here.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_POWERS = {"k": "e3", "K": "e3", "M": "e6", "B": "e9", "T": "e12"}


def number(text: str) -> float:
    """Returns the number that ``text`` is; a ValueError refuses any other text.

    Python alone would also take 1_000 and the digits of other scripts, which are slips in a table.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is no number")
    return float(text)


def amount(text: str) -> float:
    """Returns the number in a table's cell: 2.5e9, 12.0M, 1.2B or 1,000; else a ValueError."""
    text = text.strip()
    power = _POWERS.get(text[-1:], "")
    digits = text[:-1].rstrip() if power else text
    return number((digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits) + power)


def joined(texts: Iterable[object], word: str = "and") -> str:
    """Returns texts as a list in a sentence: a, b and c."""
    *others, last = map(str, texts)
    return f"{', '.join(others)} {word} {last}" if others else last


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun: 1 run, 12 runs; ``nouns`` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def short(value: float) -> str:
    """Returns a size in few characters: 950, 64k, 1.2M, 17B."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if 0.9995 * scale <= value < 9.995e14:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
