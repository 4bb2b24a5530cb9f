"""A mapping file, which says how a table of others' runs becomes a study's table."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from moelaws.spec.base import Count, Frozen, Positive, text_like
from moelaws.spec.errors import without_password
from moelaws.spec.fit import Name, UnitWord

Sha256 = Annotated[str, text_like("[0-9a-f]{64}", "a SHA-256: 64 hexadecimal digits")]


class SourceFile(Frozen):
    """A file of the source."""

    file: Annotated[str, text_like(r"[^/\0]*[^/\0.][^/\0]*", "the name of a file")]
    sha256: Sha256 | Literal[""] = ""  # the digest that the file must have; empty: any
    url: Annotated[str, AfterValidator(without_password)] = ""
    part: str = ""  # the key of a JSON object, or the heading of a page, below which the rows are


class Origin(SourceFile):
    """Where the source is from and what may be done with it."""

    others: tuple[SourceFile, ...] = ()  # further files, which the SQL calls source2, source3, ...
    licence: str
    attribution: str

    @property
    def files(self) -> tuple[SourceFile, ...]:
        return (self, *self.others)


class Published(Frozen):
    """What the register says of public runs. The import checks the numbers."""

    what: str
    losses: str  # says which text the losses are of, by which tokenizer and in which unit
    runs: Count
    C: tuple[Positive, Positive]  # the least and the largest budget, FLOP
    assumed: tuple[str, ...] = ()  # sentences on what the source does not say


class Further(Frozen):
    """A column that no study's table has by itself."""

    type: Literal["string", "float", "int"]
    unit: UnitWord
    description: str


class Mapping(Frozen):
    """How the rows and columns of a table become those of a study's table."""

    study: Name  # the study that the table is of
    origin: Origin
    public: Published | None = None  # of runs in the register
    # One SELECT over ``source`` with a row for each run; its columns have the names of a study's
    # table (tables.schema), in the units of these, or those of ``more``.
    sql: str
    notes: dict[Name, str] = {}  # column -> what the reader must know of its values
    more: dict[Name, Further] = {}

    @property
    def words(self) -> set[str]:
        """Returns the words of the SQL, among which are the columns that it fills."""
        return set(re.findall(r"\w+", self.sql))
