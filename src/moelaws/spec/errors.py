"""A user's mistake raises ``UserError``, whose text says where the mistake is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake that the user can mend; the command line prints its text and exits with code 2.

    The text says, as far as they are known: the file, the key, the value, what is allowed and
    what to do.
    """


@contextmanager
def located(file: object, *keys: object) -> Iterator[None]:
    """Puts ``FILE: a.b.c: `` before the text of a ``UserError`` that is raised within.

    Args:
        file: the file or whatever else holds the mistake, such as a table's name.
        keys: the path of keys to it within the file, if any.
    """
    try:
        yield
    except UserError as error:
        path = ".".join(map(str, keys))
        raise UserError(": ".join(text for text in (str(file), path, str(error)) if text)) from None
