"""Scaling laws, one a module: the law ``family.name`` is ``moelaws.laws.family.name.LAW``.

Other forms of it are in that module's ``VARIANTS`` and named ``family.name:variant``. Laws are
found by their files and imported only when asked for; adding one is adding its module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from moelaws.laws.base import FittableLaw, Law
from moelaws.spec.errors import UserError

# Modules of this folder that are no law.
_SHARED = {"base", "kinds", "mapping", "protocol", "vocabulary", "roots"}


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


def get(ref: str) -> Law:
    """The law of that id, or of ``ID:VARIANT`` the form of that name.

    Raises:
        UserError: for an unknown id or variant; its text lists the known ones.
    """
    law_id, colon, name = ref.partition(":")
    if law_id not in ids():
        near = get_close_matches(law_id, ids(), 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"unknown law {law_id!r}{meant}; known: {', '.join(ids())}")
    if not colon:
        law = importlib.import_module(module(ref)).LAW
        assert isinstance(law, Law)
        return law
    known = variants(law_id)
    if name not in known:
        listed = ", ".join(list(known)[:12]) or "none"
        listed += f" ... ({len(known)} in all)" if len(known) > 12 else ""
        raise UserError(f"law {law_id} has no variant {name!r}; there are: {listed}")
    return known[name]


def variants(law_id: str) -> Mapping[str, Law]:
    """The other forms of a law by name; empty for a law that has one alone."""
    found: Mapping[str, Law] = getattr(importlib.import_module(module(law_id)), "VARIANTS", {})
    return found


def fittable(ref: str) -> FittableLaw:
    """The law of that id, which a table's rows determine.

    Raises:
        UserError: for an unknown id, or a formula that is computed and never fitted.
    """
    law = get(ref)
    if not isinstance(law, FittableLaw):
        forms = [law.ref for law in variants(law.id).values() if isinstance(law, FittableLaw)]
        also = f"; its forms that are fitted: {', '.join(forms)}" if forms else ""
        raise UserError(f"law {ref} is a formula: it has nothing to fit{also}")
    return law


def module(ref: str) -> str:
    """The module of the law, for those who depend on its code."""
    return f"moelaws.laws.{ref.partition(':')[0]}"
