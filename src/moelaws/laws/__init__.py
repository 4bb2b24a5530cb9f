"""Scaling laws, one a module: the law ``family.name`` is ``moelaws.laws.family.name.LAW``.

Laws are found by their files and imported only when asked for; adding one is adding its module.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from moelaws.laws.base import Law
from moelaws.spec.errors import UserError

_SHARED = {"base", "kinds", "mapping", "protocol"}  # modules of this folder that are no law


@cache
def ids() -> tuple[str, ...]:
    """Every law's id, sorted."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            family = [f"{path}/{module.name}" for path in __path__]
            found += [f"{module.name}.{law.name}" for law in pkgutil.iter_modules(family)]
        elif module.name not in _SHARED:
            found.append(module.name)
    return tuple(sorted(found))


def get(law_id: str) -> Law:
    """The law of that id.

    Raises:
        UserError: for an unknown id; its text lists the known ones.
    """
    if law_id not in ids():
        raise UserError(f"unknown law {law_id!r}; known: {', '.join(ids())}")
    law = importlib.import_module(f"moelaws.laws.{law_id}").LAW
    assert isinstance(law, Law)
    return law
