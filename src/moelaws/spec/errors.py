"""The one exception that a user's mistake raises."""

from __future__ import annotations


class UserError(Exception):
    """A mistake that the user can mend; the command line prints its text and exits with code 2.

    The text says, as far as they are known: the file, the key, the value, what is allowed and
    what to do.
    """


def found(file: object, key: str, value: object, allowed: str) -> UserError:
    """A ``UserError`` of the standard form: ``FILE: KEY is VALUE; ALLOWED``."""
    return UserError(f"{file}: {key} is {value!r}; {allowed}")
