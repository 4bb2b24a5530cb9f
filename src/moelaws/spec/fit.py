"""Entries of a study that fit laws: one law to one table, and several laws side by side."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from moelaws.spec.base import Count, Fraction, Frozen, Positive, text_like

# Names become file names and Snakemake wildcards.
Name = Annotated[
    str,
    text_like(
        "[A-Za-z][A-Za-z0-9_]*",
        "a name of letters, digits and underscores that begins with a letter",
    ),
]


def _text(value: object) -> object:
    # YAML reads a unit such as 1e+6 as a number.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


UnitWord = Annotated[str, BeforeValidator(_text)]


class Entry(Frozen):
    """Entries share their names, and where their losses may come from."""

    name: Name
    simulated: bool = True  # False: it needs what no law gives, such as training curves

    @property
    def needs(self) -> set[str]:
        """The fits and derived tables that it reads."""
        return set()


class Fit(Entry):
    """One law fitted to one table: which rows, which column is which variable, what is held out."""

    law: str  # a law, such as sparsity.loss, or a form of it, such as allocation.loss:sqlog
    mapping: dict[str, str]  # variable, of the law or to derive from -> the table's column
    units: dict[str, UnitWord] = {}  # variable -> its column's unit: M, percent, bits, PF-days, 1e6
    table: Name | Literal[""] = ""  # a derived table, or a split fit's estimates; else the study's
    sweep: Name | Literal[""] = ""  # rows of one of the grid's sweeps alone
    rows: str = ""  # rows to use, such as "S > 0 and C >= 1e11"; all by default
    split_by: str = ""  # a column: one fit for each of its values
    holdout: str = ""  # rows kept for validation, such as "S >= 0.98"
    rollout: str = ""  # a column such as C: fit below each of its values, predict above
    protocol: dict[str, Any] = {}  # overrides of the law's own fit protocol
    weights: str = ""  # a column with the standard error of the response, in the response's unit
    bootstrap: Annotated[Count, Field(le=100_000)] = 200  # refits for the intervals
    resample_by: str = ""  # a column whose values are the bootstrap's blocks; rows by default
    intervals: Literal["auto", "bootstrap", "student"] = "auto"
    level: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9  # of the intervals
    profile: tuple[str, ...] = ()  # parameters whose likelihood is profiled
    select: bool = False  # choose among the law's candidate forms by cross-validation
    # A fit that would take longer is refused; it decides no number, so that no report holds it.
    max_hours: Annotated[Positive, Field(exclude=True)] = 24.0

    @property
    def needs(self) -> set[str]:
        return {self.table} - {""}

    def uses_student(self, objective: str) -> bool:
        """Whether the intervals are Student's t, for which nothing is refitted."""
        if self.intervals == "auto":
            return objective == "squared" and not self.resample_by
        return self.intervals == "student"


class Split(Frozen):
    """Rows that are kept from every law of a contest, which then predicts them."""

    name: Name
    use: str  # what such a prediction is good for; completes "to predict": larger models
    rows: str = ""  # of the contest's, such as "C >= 1e11"; all by default
    holdout: str = ""  # the rows kept, such as "E >= 256"
    largest: str = ""  # or a column: those of its largest value
    rollout: str = ""  # or a column: fit below each of its values, predict above

    @property
    def column(self) -> str:
        """The column whose values say what is kept; empty where an expression does."""
        return self.largest or self.rollout

    @model_validator(mode="after")
    def _keeps_rows(self) -> Split:
        if sum(map(bool, (self.holdout.strip(), self.largest, self.rollout))) != 1:
            raise ValueError("it must have one of holdout, largest and rollout")
        return self


class Contest(Entry):
    """Laws fitted to the same rows of the study's table and judged on the same rows kept back."""

    laws: Annotated[tuple[str, ...], Field(min_length=2)]
    mapping: dict[str, str] = {}  # variable of any of them -> the table's column
    mappings: dict[str, dict[str, str]] = {}  # law -> what it maps otherwise
    sweep: Name | Literal[""] = ""
    rows: str = ""
    splits: Annotated[tuple[Split, ...], Field(min_length=1)]
    protocol: dict[str, Any] = {}  # overrides of each law's own
    bootstrap: Annotated[Count, Field(le=100_000)] = 1000
    resample_by: str = ""  # a column whose values are blocks of rows that err together
    level: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9

    def fit(self, split: Split, mark: str) -> Fit:
        """Returns the fits' entry at a split; in the column ``mark`` fitted rows are 0, held 1."""
        return Fit(
            name=f"{self.name}_{split.name}",
            law=",".join(self.laws),
            mapping=self.mapping,
            rows=f"{mark} >= 0",
            holdout=f"{mark} > 0",
            protocol=self.protocol,
            bootstrap=self.bootstrap,
            resample_by=self.resample_by,
            intervals="bootstrap",
            level=self.level,
        )
