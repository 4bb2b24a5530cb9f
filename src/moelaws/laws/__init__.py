"""Scaling laws, one a module: each defines ``LAW``, and other forms of it in ``VARIANTS``.

The law ``family.name`` is the module ``name`` in the folder ``laws`` of the study ``family``. A law
of the wider field is ``family/name.py`` or ``name.py`` here. Its other forms are named
``family.name:variant``. A law is listed by its file and imported only when it is needed, so that to
add a law is to add its module.
"""

import pkgutil
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

from moelaws.laws.base import FittableLaw, Law
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.references import folder, module_of, packages

# Modules of this folder that are not laws
_SHARED = {
    *("base", "declared", "forms", "mapping", "protocol", "reduced", "roots", "terms"),
    "vocabulary",
}


@cache
def _places(studies: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    """Maps a law's id to the package that holds it and its reference below that, sorted by id."""
    places: dict[str, tuple[str, str]] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            folders = [f"{path}/{module.name}" for path in __path__]
            law_ids = [f"{module.name}.{law.name}" for law in pkgutil.iter_modules(folders)]
        else:
            law_ids = [module.name] if module.name not in _SHARED else []
        places |= {law_id: (__name__, f"{law_id}:LAW") for law_id in law_ids}
    for package in studies:
        key = package.rpartition(".")[2]
        for module in pkgutil.iter_modules([str(folder(package) / "laws")]):
            law_id = f"{key}.{module.name}"
            if law_id in places:
                raise UserError(
                    f"package {package} has a law {law_id}, which is taken; rename the package"
                )
            places[law_id] = (package, f"laws.{module.name}:LAW")
    return dict(sorted(places.items()))


def ids() -> tuple[str, ...]:
    return tuple(_places(packages()))


def get(ref: str) -> Law:
    """Returns the law of an id, or the form of ``ID:VARIANT``; a UserError lists the known ones."""
    law_id, colon, name = ref.partition(":")
    if not colon:
        law: Law = _module(law_id).LAW
        return law
    if name not in (known := variants(law_id)):
        listed = ", ".join(list(known)[:12]) or "none"
        listed += f" ... ({len(known)} in all)" if len(known) > 12 else ""
        raise UserError(f"law {law_id} has no variant {name!r}; there are: {listed}")
    return known[name]


def variants(law_id: str) -> Mapping[str, Law]:
    """Returns the other forms of a law by name; empty for a law of one form."""
    forms: Mapping[str, Law] = getattr(_module(law_id), "VARIANTS", {})
    return forms


def fittable(ref: str) -> FittableLaw:
    """Returns the law of that id; a UserError refuses a formula, which has nothing to fit."""
    law = get(ref)
    if not isinstance(law, FittableLaw):
        forms = [law.ref for law in variants(law.id).values() if isinstance(law, FittableLaw)]
        also = f"; its forms that are fitted: {', '.join(forms)}" if forms else ""
        raise UserError(f"law {ref} is a formula: it has nothing to fit{also}")
    return law


def _module(law_id: str) -> ModuleType:
    """Returns the module of a law; a UserError tells what is wrong in a user's own."""
    name = module(law_id)
    try:
        loaded = import_module(name)
    except Exception as error:  # a module of their own may raise anything
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = "" if last.filename.startswith("<") else f" ({last.filename}, line {last.lineno})"
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"law {law_id}: the module {name} cannot be read: {text}{place}") from error
    law = getattr(loaded, "LAW", None)
    if not isinstance(law, Law) or law.id != law_id:
        raise UserError(f"law {law_id}: the module {name} has no LAW with the id {law_id!r}")
    return loaded


def module(ref: str) -> str:
    """Returns the name of the module that holds the law."""
    law_id = ref.partition(":")[0]
    if law_id not in ids():
        raise UserError(f"unknown law {law_id!r}{or_nearest(law_id, ids(), 'known')}")
    return module_of(*_places(packages())[law_id])
