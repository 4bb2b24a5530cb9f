"""The entries of a study that are made of its tables and fits: tables, pictures and claims."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from moelaws.spec.base import text_like
from moelaws.spec.fit import Entry, Name
from moelaws.spec.measure import Expected, Measure, Reads
from moelaws.spec.references import Reference
from moelaws.spec.series import Declared
from moelaws.spec.tier import Tiers

MEASURED = "moelaws.claims.measure:measured"  # the code behind all general rules
# A file below the study's package: data/runs.parquet
Shipped = Annotated[
    str,
    text_like(
        r"[A-Za-z0-9]\w{0,99}([./-]\w{1,100}){0,19}",
        "the path of a file below the study's package, such as data/runs.parquet",
    ),
]


class Reader(Entry):
    """An entry whose code reads the study's table, and the fits and derived tables it names."""

    code: Reference  # the function that makes it, below the study's package: figures.optima:draw
    arguments: dict[Name, Any] = Field({}, alias="with")  # keywords of the function
    fits: tuple[Name, ...] = ()
    derived: tuple[Name, ...] = ()

    @property
    def needs(self) -> set[str]:
        return {*self.fits, *self.derived}

    @property
    def references(self) -> tuple[str, ...]:
        """Returns the functions below the study's package that make it."""
        return (self.code,)


class Derived(Reader):
    """A table made from a study's table and fits."""

    # Whether it reads, of the runs whose weights are kept, these, hidden states, scores on tasks
    weights: bool = False
    hidden: bool = False
    scores: bool = False
    speed: Tiers = ()  # the tiers at which it reads how fast configurations train side by side
    data: tuple[Shipped, ...] = ()  # files of the study's package that it reads


class Figure(Reader, Declared):
    """A picture of the paper under the paper's name for it, such as F1a.

    Code draws it, or it declares what its panels show.
    """

    caption: str
    code: Reference | Literal[""] = ""

    @model_validator(mode="after")
    def _draws_declared_tables(self) -> Self:
        if bool(self.code) == bool(self.panels):
            raise ValueError("it must have either code or panels")
        for series in self.series:
            if series.table not in ("runs", *self.derived):
                raise ValueError(f"panels: derived must name the table {series.table!r}")
            if missing := {series.predicted, series.curve} - {"", *self.fits}:
                raise ValueError(f"panels: fits must name the fit {missing.pop()!r}")
        return self

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(code for code in (self.code, *(s.code for s in self.series)) if code)


class PaperTable(Reader):
    """A table that the paper prints, under the paper's name for it, such as T3."""

    caption: str


class Claim(Reader):
    """What the paper claims, and what measures it: one of the general rules, or code."""

    statement: str  # what the paper claims, in our words
    source: str  # paper key and section, figure or equation
    rule: str  # what the code does, in a sentence or two
    code: Reference = MEASURED
    measure: Measure | None = None  # a general rule, in place of code
    reads: Reads = Reads()  # the number in a sentence, which the verdict begins with
    expect: Expected  # an interval within supports the claim, one outside contradicts it
    needed: str = ""  # what would decide the claim if these runs cannot
    null_model: Name | Literal[""] = ""  # of the study's nulls: runs without the claim's effect
    figure: Name  # to look at

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        """Returns the claim with what its general rule reads among what the claim reads."""
        own = self.code != MEASURED
        if own == bool(self.measure):
            raise ValueError("it must have either measure or code")
        if self.measure is None:
            return self
        if self.arguments:
            raise ValueError("with: it is for code; measure holds all that a general rule takes")
        tables = (*self.derived, self.measure.source)
        read = {
            "fits": tuple(dict.fromkeys((*self.fits, *self.measure.read_fits))),
            "derived": tuple(name for name in dict.fromkeys(tables) if name),
            "arguments": {"rule": self.measure},
        }
        return self.model_copy(update=read)
