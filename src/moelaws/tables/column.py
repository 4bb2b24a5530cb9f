"""A declared column of a table, and those that several tables have (``column.toml``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moelaws.spec.from_toml import table_beside


@dataclass(frozen=True)
class Column:
    """A column's name, type, unit ("1" for a pure number) and meaning."""

    name: str
    type: Literal["string", "float", "int", "bool"]
    unit: str
    description: str
    nullable: bool = False


def stated(columns: Mapping[str, Sequence[Any]]) -> tuple[Column, ...]:
    """Returns columns that a table states: name -> type (with a ? if nullable), unit, meaning."""
    return tuple(
        Column(name, kind.rstrip("?"), unit, text, nullable=kind.endswith("?"))
        for name, (kind, unit, text) in columns.items()
    )


COVERAGE, RUNS, INSIDE, NOTE = stated(table_beside(__file__))


def estimated(
    name: str, unit: str, description: str, ends: str | None = None
) -> tuple[Column, ...]:
    """Returns the columns of a number that may be missing, and of the ends of its interval.

    The names of the ends begin with ``ends``, or with the number's name: N_low and N_high of N.
    """
    before = name + "_" if ends is None else ends and ends + "_"
    return (
        Column(name, "float", unit, description, True),
        Column(f"{before}low", "float", unit, "lower end of its interval", True),
        Column(f"{before}high", "float", unit, "upper end of its interval", True),
    )
