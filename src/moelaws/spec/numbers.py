"""Reads numbers that people wrote."""

import re

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
    """Returns the number in a table's cell: 2.5e9, 12.0M, 1,000 or 16.6%; else a ValueError."""
    text = text.strip()
    if text.endswith("%"):
        return number(text[:-1]) / 100
    power = _POWERS.get(text[-1:], "")
    digits = text[:-1].rstrip() if power else text
    return number((digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits) + power)
