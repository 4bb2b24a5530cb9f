"""Reads a mapping file, and says which columns its table has; light, for the Snakefile."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.importing import Mapping
from moelaws.spec.study import DATASET
from moelaws.tables.column import Column
from moelaws.tables.schema import IMPORTED_COLUMNS

_SET_BY_IMPORT = ("study", "tier", "source")


def read_mapping(path: Path) -> Mapping:
    """Returns the mapping in a YAML file."""
    mapping = parse(Mapping, read_yaml(path), path)
    known = [c.name for c in IMPORTED_COLUMNS if c.name not in _SET_BY_IMPORT]
    for name in mapping.columns:
        if name not in known:
            also = "; it is set by the import itself" if name in _SET_BY_IMPORT else ""
            near = also or or_nearest(name, known, "there are")
            raise UserError(f"{path}: columns: a study's table has no {name!r} to fill{near}")
    for name in mapping.more:
        if name in {c.name for c in IMPORTED_COLUMNS}:
            raise UserError(
                f"{path}: more.{name}: a study's table has this column; put it under columns"
            )
    if "status" not in mapping.columns:
        raise UserError(
            f"{path}: columns.status is missing; where all runs completed it is "
            "`status: {value: completed}`"
        )
    return mapping


def columns_of(mapping: Mapping) -> tuple[Column, ...]:
    """Returns the columns of the table that ``mapping`` makes: a study's, then its own."""
    own = tuple(
        replace(column, description=f"{column.description}; here: {note}")
        if (note := mapping.columns[column.name].note if column.name in mapping.columns else "")
        else column
        for column in IMPORTED_COLUMNS
    )
    further = tuple(
        Column(name, f.type, f.unit, "; here: ".join(filter(None, (f.description, f.note))), True)
        for name, f in mapping.more.items()
    )
    return own + further


def joined_columns(mappings: Iterable[Mapping]) -> tuple[Column, ...]:
    """Returns the columns of a table that joins those of several mappings."""
    dataset = Column(DATASET, "string", "1", "table of the register that the run is of")
    columns = {column.name: column for column in (*IMPORTED_COLUMNS, dataset)}
    for mapping in mappings:
        for own in columns_of(mapping):
            known = columns.setdefault(own.name, own)
            if (known.type, known.unit) != (own.type, own.unit):
                raise UserError(
                    f"more.{own.name} of {mapping.study} is {own.type} in {own.unit}, and another "
                    f"table of the register has it as {known.type} in {known.unit}"
                )
    return tuple(columns.values())


def digest_of(mapping: Mapping) -> str:
    """Returns the SHA-256 of a mapping's content, which the layout of its file does not change."""
    return hashlib.sha256(mapping.canonical_json().encode()).hexdigest()
