"""Several options of a command as the one argument that they make."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

Command = Callable[..., Any]


def gathered(
    keyword: str, build: Callable[..., object], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Returns a decorator that adds click's ``options`` to a command.

    The command receives, as ``keyword``, what ``build`` makes of the options by their names.
    """
    names = tuple(inspect.signature(build).parameters)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(*arguments: Any, **values: Any) -> Any:
            built = build(**{name: values.pop(name) for name in names})
            return command(*arguments, **values, **{keyword: built})

        decorated: Command = wrapped
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
