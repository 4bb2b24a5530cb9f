"""A mapping file, which says how a table of others' runs becomes a study's table."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, FiniteFloat, model_validator

from moelaws.spec.base import Count, Frozen, Positive, text_like
from moelaws.spec.errors import without_password
from moelaws.spec.fit import Name, UnitWord

Sha256 = Annotated[str, text_like("[0-9a-f]{64}", "a SHA-256: 64 hexadecimal digits")]
Word = bool | int | FiniteFloat | str  # bool first, or true would be 1


class SourceFile(Frozen):
    """A file of the source."""

    file: Annotated[str, text_like(r"[^/\0]*[^/\0.][^/\0]*", "the name of a file")]
    sha256: Sha256 | Literal[""] = ""  # the digest that the file must have; empty: any
    url: Annotated[str, AfterValidator(without_password)] = ""
    part: str = ""  # the key of a JSON object, or the heading of a page, below which the rows are


class OtherFile(SourceFile):
    """A further file, whose rows follow those of the first or whose columns join them."""

    join: str = ""  # a column that both files have and that tells rows apart; empty: rows follow
    columns: dict[str, str] = {}  # of a file that joins: the columns to take -> their names


class Origin(SourceFile):
    """Where the source is from and what may be done with it."""

    # Where their rows follow, a new column ``file`` says whose they are
    others: tuple[OtherFile, ...] = ()
    licence: str
    attribution: str

    @property
    def files(self) -> tuple[SourceFile, ...]:
        return (self, *self.others)


class Published(Frozen):
    """What the register says of public runs. The import checks the numbers."""

    what: str
    losses: str  # of which text, by which tokenizer, in which unit
    runs: Count
    C: tuple[Positive, Positive]  # the least and the largest budget, FLOP
    assumed: tuple[str, ...] = ()  # sentences on what the source does not say


class _Source(Frozen):
    """Where a column's values come from: a source column, one value for all rows, or arithmetic."""

    column: str = ""  # of the source
    columns: tuple[str, ...] = ()  # of the source, joined as texts: name and seed to a run_id
    # What to take of the column's texts: the one group of a regular expression, "lr=([0-9.e-]+)"
    pattern: str = ""
    values: dict[Word, Word] = {}  # the source's words or numbers -> ours; others are refused
    value: Word | None = None
    expression: str = ""  # over our columns and the source's; ours win where names are the same
    note: str = ""  # what the reader must know of the values; it joins the column's description

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = (self.column, self.columns, self.value is not None, self.expression)
        if sum(map(bool, given)) != 1:
            raise ValueError("it must have exactly one of column, columns, value and expression")
        if (self.values or self.pattern) and not self.column:
            raise ValueError("values and pattern go with a column alone")
        try:
            groups = re.compile(self.pattern or "()").groups
        except re.error as error:
            raise ValueError(f"pattern is no regular expression: {error}") from None
        if groups != 1:
            raise ValueError(f"pattern has {groups} groups in brackets; it must have one")
        return self


class Values(_Source):
    """Values for a column that every study's table has; a bare name is the source's column."""

    unit: UnitWord = ""  # of the values, if it differs from ours: M, percent, bits, 1e6

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, data: Any) -> Any:
        return {"column": data} if isinstance(data, str) else data


class Further(_Source):
    """A column that no study's table has by itself."""

    type: Literal["string", "float", "int"]
    unit: UnitWord
    description: str


class Long(Frozen):
    """Columns of one quantity that become one column, with a row for each cell that is filled."""

    columns: dict[str, Word]  # of the source -> what the column is for: loss_1e18 -> 1e18
    name: str  # of the new column that says what a cell is for, such as C
    value: str  # of the new column of the cells, such as loss


class Mapping(Frozen):
    """How the rows and columns of a table become those of a study's table."""

    study: Name  # the study that the table is of
    origin: Origin
    public: Published | None = None  # of runs in the register
    long: Long | None = None  # how a table with a column for each budget or step is read
    # Columns that arithmetic adds to the source's before rows are kept: left -> steps - last_step
    computed: dict[Name, str] = {}
    rows: str = ""  # rows to keep, by the source's columns: "k == 1 and step > 0"
    only: dict[str, tuple[Word, ...]] = {}  # rows to keep, by words: column -> the words allowed
    # A column such as step; of a run's rows the one with its largest value is kept. Rows without a
    # loss do not count, unless the run has none at all.
    last: str = ""
    # Which is kept of several rows of one run, or, where no run_id is mapped, of rows that are the
    # same in every column: the first, the last, the best (the completed run of least loss), or all,
    # where the second run of a name becomes NAME#2. By default they are refused.
    duplicates: Literal["first", "last", "best", "all", "refuse"] = "refuse"
    # The status of a completed run whose loss is missing or infinite; empty: such a run is refused.
    without_loss: Literal["diverged", "out_of_memory", ""] = ""
    columns: dict[str, Values]  # of a study's table (tables.schema)
    more: dict[Name, Further] = {}

    @property
    def entries(self) -> dict[str, Values | Further]:
        return {**self.columns, **self.more}

    @property
    def loss(self) -> str:
        """Returns the column that a completed run must have: L, or bpb if that alone is mapped."""
        return "bpb" if "bpb" in self.columns and "L" not in self.columns else "L"
