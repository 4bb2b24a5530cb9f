"""A declared column of a table."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Column:
    """A column's name, type, unit ("1" for a pure number) and meaning."""

    name: str
    type: Literal["string", "float", "int", "bool"]
    unit: str
    description: str
    nullable: bool = False


# Of a table whose intervals cover one share of what they are of
COVERAGE = Column("level", "float", "1", "coverage of the intervals")
RUNS = Column("n", "int", "runs", "runs behind the row")
INSIDE = Column(
    "inside", "bool", "1", "the minimum is inside what was measured; else it is a bound"
)
NOTE = Column("note", "string", "1", "why a number is missing, or only a bound; or empty")


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
