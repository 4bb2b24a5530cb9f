"""What a claim expects, and the general rules one of which may measure it, under ``measure``."""

import re
from collections.abc import Collection, Iterable
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from moelaws.spec.base import Frozen, NonNegative, Real, Whole
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.fit import Name, NoName
from moelaws.spec.rows import RowExpression, parse_rows

BRACES = r"\{(\w+)\}"  # a name of ``says`` that stands for a fact


def refuse_lack(word: str, known: Collection[str], lack: str) -> None:
    """Refuses a ``word`` that is not ``known``: ``lack`` says where it is not."""
    if word not in known:
        raise UserError(f"measure: {lack} {word!r}{or_nearest(word, known, 'there are')}")


class Expected(Frozen):
    """The range in which the interval of a claim's number lies if the claim holds."""

    above: Real | None = None
    below: Real | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.above is None and self.below is None:
            raise ValueError("it must have above or below, or both")
        return self


class Reads(Frozen):
    """How the number of a claim is read aloud, in a unit that a person knows."""

    says: str = "the effect is {effect}"
    unit: str = ""  # if not that of the number
    factor: Real = 1.0  # such as ln 2 of a slope over a logarithm, for a doubling
    percent: bool = False  # of a change of a logarithm, and then in per cent

    @model_validator(mode="after")
    def _has_the_effect(self) -> Self:
        if "{effect}" not in self.says:
            raise ValueError("says must hold {effect}, for which the number stands")
        return self


class _Rule(Frozen):
    unit: str = ""
    # The sentence that says what was measured; names in braces stand for what the rule measures
    says: str = "{each}"
    missing: str = ""  # what is needed where no rows are there, if not what the claim says
    # What may stand in braces; empty where the columns of a table may, which is not made yet
    facts: ClassVar[tuple[str, ...]] = ()

    def refuse_words(self) -> None:
        """Refuses a name in braces that stands for nothing, as far as that is known by now."""
        for name in re.findall(BRACES, self.says) if self.facts else ():
            refuse_lack(name, self.facts, "says: there is no")

    @property
    def read_fits(self) -> tuple[str, ...]:
        """Returns the fits that the rule reads."""
        return ()

    @property
    def source(self) -> str:
        """Returns the derived table that the rule reads, or nothing for the study's own table."""
        return str(getattr(self, "table", ""))

    @property
    def columns(self) -> set[str]:
        """Returns the columns that the rule reads of its table."""
        return set()

    def refuse_unknown(self, columns: Iterable[str]) -> None:
        """Refuses a rule that reads a column or an interval which is not among its table's."""
        known = sorted(columns)
        name = f"the table {self.source}" if self.source else "the study's table"
        for column in sorted(self.columns):
            refuse_lack(column, known, f"{name} has no column")
        for column in getattr(self, "numbers", ()):
            if not {f"{column}_low", "low"}.intersection(known):
                no = f"{name} has no interval of {column}: it has no column {column}_low"
                raise UserError(f"measure: {no}")


class Rows(_Rule):
    """Numbers in rows of a derived table, with the intervals that stand beside them."""

    rule: Literal["rows"]
    table: Name
    where: RowExpression = ""  # the rows
    effect: Name  # the column of the number
    joined: tuple[Name, ...] = ()  # numbers whose intervals the one that decides must hold too
    beside: tuple[Name, ...] = ()  # further numbers to print
    of: Name  # the column that says what a row is of
    # The number to print alone. The mean is the row that is of "mean"
    show: Literal["first", "middle", "least", "farthest", "mean"] = "first"
    decide: Literal["each", "shown"] = "each"  # the rows that decide; a mean is not one of each

    @property
    def numbers(self) -> tuple[str, ...]:
        """Returns those of the columns that must have an interval."""
        return (*self.joined, *self.beside, self.effect)

    @property
    def columns(self) -> set[str]:
        return {self.of, *self.numbers, *(clause.column for clause in parse_rows(self.where))}


class Bound(_Rule):
    """All values of a column: each decides, and the one to print lies farthest from ``centre``."""

    rule: Literal["bound"]
    table: NoName = ""  # a derived table, or the study's own
    column: Name
    over: NoName = ""  # by which the values are divided
    centre: Real = 0.0
    says: str = "{column} is {least} to {largest}"
    facts = "column", "least", "largest", "n"

    @property
    def columns(self) -> set[str]:
        return {self.column, self.over} - {""}


class Parameter(_Rule):
    """A parameter of fits with its interval; each fit decides, and the first is printed alone."""

    rule: Literal["parameter"]
    parameter: str
    fits: tuple[Name, ...]
    where: RowExpression = ""  # if the fit is split, the groups whose numbers decide
    ends: Literal["report", "profile"] = "report"  # whose interval
    margin: NonNegative = 0.0  # by which the interval is wider at either end, for a known bias
    fewest: Whole = 0  # runs for each free parameter of a fit, below which it says nothing
    facts = "each", "n"

    @property
    def read_fits(self) -> tuple[str, ...]:
        return self.fits


class Excess(_Rule):
    """How much larger the errors of other fits are than those of a fit, on the runs held out.

    Each of the other fits decides, and the least excess is printed alone.
    """

    rule: Literal["excess"]
    fit: Name
    over: tuple[Name, ...]
    table: NoName = ""  # a derived table, or the study's own
    # Columns; runs that agree in them err together, and a jackknife leaves out such blocks. Without
    # any, intervals are by the draws of the fits
    blocks: tuple[Name, ...] = ()
    fewest: Whole = 0  # runs for each free parameter of the fit, below which it says nothing
    says: str = "RMSE on {n} runs is {own} by {fit}; by others it is larger by: {each}"
    facts = "fit", "own", "n", "each"

    @property
    def read_fits(self) -> tuple[str, ...]:
        return (self.fit, *self.over)

    @property
    def columns(self) -> set[str]:
        return {*self.blocks}


Measure = Annotated[Rows | Bound | Parameter | Excess, Field(discriminator="rule")]
