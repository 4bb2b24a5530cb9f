"""A user's mistake raises ``UserError``, whose text says where the mistake is."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake that the user can mend; the command line prints its text and exits with code 2.

    The text says the file, the key, the value, what is allowed and what to do, as far as these are
    known. Any function that reads what a user wrote, or writes a file, may raise it. Docstrings
    mention it where a caller could not guess it.
    """


class ColumnsError(UserError):
    """Variables of a law have no column that fits; ``columns`` and ``units`` are likely ones."""

    def __init__(self, text: str, columns: dict[str, str], units: dict[str, str]) -> None:
        super().__init__(text)
        self.columns, self.units = columns, units


@contextmanager
def located(file: object, *keys: object) -> Iterator[None]:
    """Puts ``FILE: a.b.c: `` before the text of a ``UserError`` that is raised within.

    In place of a file, ``file`` may name anything else that holds the mistake, such as a table.
    """
    try:
        yield
    except UserError as error:
        path = ".".join(map(str, keys))
        error.args = (": ".join(text for text in (str(file), path, str(error)) if text),)
        raise error from None


def quoted(value: object, longest: int = 60) -> str:
    """Returns a user's value as a message shows it: on one line, and cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a deep nesting
        return "a value too long to show"
    return text if len(text) <= longest else f"{text[:longest]}..."


def without_password(url: str) -> str:
    """Returns an address as messages and records show it, without a name and a password."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def listed(names: Iterable[object], limit: int = 40) -> str:
    """Returns names as a message lists them, such as ``N, D, L``; odd ones are quoted."""
    texts = [str(name) for name in names]
    head = texts[:limit]
    plain = [t if t.isprintable() and 0 < len(t.strip()) <= 60 else quoted(t) for t in head]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(plain) + more


def nearest(word: object, known: Iterable[str]) -> str:
    """Returns ``; did you mean X?`` for the nearest ``known`` word; empty if none is near."""
    near = difflib.get_close_matches(str(word)[:100], list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def or_nearest(word: object, known: Iterable[str], label: str) -> str:
    """Returns the end of a message on an unknown ``word``: the nearest known word, and all."""
    words = list(known)
    near = nearest(word, words)
    listed = f"{label}: {', '.join(words) or 'none'}"
    return f"{near} {listed[0].upper()}{listed[1:]}" if near else f"; {listed}"


def refuse_unknown(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises a ValueError if one of ``names`` is not ``known``; ``what`` begins its text."""
    for name in names:
        if name not in known:
            raise ValueError(f"{what} {name!r}{or_nearest(name, known, 'there are')}")
