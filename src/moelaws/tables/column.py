"""A declared column of a table, and those that several tables have (``column.toml``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside

TYPES = ("string", "float", "int", "bool")


@dataclass(frozen=True)
class Column:
    """A column's name, kind, meaning and unit ("1" for a pure number).

    Its kind is its type (string, float, int or bool), with a ``?`` behind it where values may be
    missing. A UserError refuses any other.
    """

    name: str
    kind: str
    description: str
    unit: str = "1"

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise UserError(
                f"column {self.name}: {self.kind!r} is no kind; there are {', '.join(TYPES)}, each "
                "with a ? behind it where values may be missing"
            )

    @property
    def type(self) -> str:
        return self.kind.rstrip("?")

    @property
    def nullable(self) -> bool:
        return self.kind.endswith("?")

    def with_nulls(self) -> "Column":
        """Returns the column, of which values may be missing."""
        return replace(self, kind=f"{self.type}?")


def stated(columns: Mapping[str, Sequence[Any]]) -> tuple[Column, ...]:
    """Returns columns that a table states: name -> kind, unit, meaning."""
    return tuple(Column(name, kind, text, unit) for name, (kind, unit, text) in columns.items())


COVERAGE, RUNS, INSIDE, NOTE = stated(table_beside(__file__))


def estimated(
    name: str, description: str, unit: str = "1", ends: str | None = None
) -> tuple[Column, ...]:
    """Returns the columns of a number that may be missing, and of the ends of its interval.

    The names of the ends begin with ``ends``, or with the number's name: N_low and N_high of N.
    """
    before = name + "_" if ends is None else ends and ends + "_"
    return (
        Column(name, "float?", description, unit),
        Column(f"{before}low", "float?", "lower end of its interval", unit),
        Column(f"{before}high", "float?", "upper end of its interval", unit),
    )
