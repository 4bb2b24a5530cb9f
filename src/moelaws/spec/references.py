"""Where code lies: packages of studies, and references below them such as ``figures.optima:draw``.

A reference is written like an entry point, ``module:object``, relative to a package. A study's
package is ``moelaws.studies.<key>``, or one that its YAML names, such as one beside that file.
"""

import importlib
import pkgutil
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from moelaws.spec.base import text_like
from moelaws.spec.errors import UserError

DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
# A module and its function below the study's package: figures.optima:draw
Reference = Annotated[
    str,
    text_like(rf"{DOTTED}:[A-Za-z_]\w*", "a module and its function, such as figures.optima:draw"),
]

STUDIES = "moelaws.studies"

_joined: list[str] = []


def packages() -> tuple[str, ...]:
    """Returns the packages of all studies: moelaws' own, sorted, then the user's."""
    return (*_own(), *_joined)


@cache
def _own() -> tuple[str, ...]:
    modules = pkgutil.iter_modules([str(folder(STUDIES))])
    return tuple(f"{STUDIES}.{module.name}" for module in modules)


def join(package: str, beside: Path) -> None:
    """Adds the folder ``beside`` to the import path, so that ``package`` can be imported from it.

    A package that is hidden by another one of its name is refused.
    """
    if str(beside.resolve()) not in sys.path:
        # At the end, so that a file there cannot hide a module of an installed package.
        sys.path.append(str(beside.resolve()))
        importlib.invalidate_caches()
        folder.cache_clear()
    own = beside.joinpath(*package.split("."))
    try:
        place = folder(package)
    except UserError:
        raise UserError(f"there is no package {package} in {beside}, and none installed") from None
    if own.is_dir() and own.resolve() != place.resolve():
        raise UserError(f"package {package} is {place}, which hides {own}; choose another name")
    if package not in packages():
        _joined.append(package)


@cache
def folder(package: str) -> Path:
    """Returns the folder of ``package``'s code; a top-level package is not imported for it."""
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"there is no package {package}, neither installed nor on the import path")
    return Path(next(iter(spec.submodule_search_locations)))


def module_of(package: str, reference: str) -> str:
    """Returns the dotted name of the module that ``reference`` names.

    It lies below ``package``, unless the reference begins with ``moelaws.``: the core's own code.
    """
    module = reference.partition(":")[0]
    return module if module.startswith("moelaws.") else f"{package}.{module}"


def resolve(package: str, reference: str) -> Any:
    """Returns the object that ``reference`` names below ``package``."""
    module, name = module_of(package, reference), reference.partition(":")[2]
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise UserError(f"{reference}: there is no module {module}") from None
    except AttributeError as error:
        if error.name != name:
            raise
        raise UserError(f"{reference}: the module {module} has no {name}") from None
