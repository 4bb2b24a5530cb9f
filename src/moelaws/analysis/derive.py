"""Make one derived table of a study and write it as Parquet with its columns' units."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from moelaws.analysis.inputs import Inputs
from moelaws.spec.errors import UserError
from moelaws.spec.study import Study
from moelaws.tables.column import Column
from moelaws.tables.parquet import write_table

T = TypeVar("T")

SOURCE = Column("source", "string", "1", "where the losses behind it come from")


def derive(study: Study, name: str, inputs: Inputs, out: Path) -> list[str]:
    """Write the study's derived table ``name`` to ``out`` (.parquet).

    The module ``moelaws.analysis.<code>`` of the table's entry offers ``derive(inputs)``, the
    ``COLUMNS`` that it makes and ``warnings(frame)``. Returns those warnings.

    Raises:
        UserError: for an unknown table or code, a missing input or one that is not declared.
    """
    entry = named(study.derived, "name", name, f"study {study.study!r} has no derived table")
    module = _module(entry.name, entry.code)
    frame = module.derive(inputs.only(entry.fits, entry.derived))
    sources = "+".join(inputs.sources)
    write_table(frame.assign(source=sources), (*module.COLUMNS, SOURCE), out)
    warnings: list[str] = module.warnings(frame)
    return warnings


def named(entries: Sequence[T], key: str, value: str, missing: str) -> T:
    """The entry whose ``key`` is ``value``.

    Raises:
        UserError: ``missing`` and the value, with those that there are.
    """
    for entry in entries:
        if getattr(entry, key) == value:
            return entry
    known = ", ".join(getattr(entry, key) for entry in entries) or "none"
    raise UserError(f"{missing} {value!r}; there are: {known}")


def _module(name: str, code: str) -> Any:
    module = f"moelaws.analysis.{code}"
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise UserError(f"derived table {name!r}: code is {code!r}; no module {module}") from None
    if not hasattr(found, "COLUMNS"):
        raise UserError(f"derived table {name!r}: code is {code!r}; {module} makes no table")
    return found
