"""A declared column: what every table says of what it holds."""

from __future__ import annotations

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
