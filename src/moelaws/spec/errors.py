"""The one exception that a user's mistake raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake that the user can mend; the command line prints its text and exits with code 2.

    The text says, as far as they are known: the file, the key, the value, what is allowed and
    what to do.
    """


def found(file: object, key: str, value: object, allowed: str) -> UserError:
    """A ``UserError`` of the standard form: ``FILE: KEY is VALUE; ALLOWED``."""
    return UserError(f"{file}: {key} is {value!r}; {allowed}")


@contextmanager
def located(file: object, *keys: object) -> Iterator[None]:
    """Says where a ``UserError`` raised within is: ``FILE: a.b.c: `` goes before its text.

    Args:
        file: the file or whatever else holds the mistake, such as a table's name.
        keys: the path of keys to it within the file, if any.
    """
    try:
        yield
    except UserError as error:
        path = ".".join(map(str, keys))
        raise UserError(": ".join(text for text in (str(file), path, str(error)) if text)) from None
