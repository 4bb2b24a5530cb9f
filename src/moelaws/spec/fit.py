"""Entries of a study that fit laws: one law to one table, and several laws side by side."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from moelaws.spec.base import Count, Filled, Frozen, Inside, Positive, Real, parse, text_like
from moelaws.spec.tier import Tier

# Names become file names and Snakemake wildcards.
Name = Annotated[
    str,
    text_like(
        "[A-Za-z][A-Za-z0-9_]*",
        "a name of letters, digits and underscores that begins with a letter",
    ),
]
NoName = Name | Literal[""]  # or none


def _text(value: object) -> object:
    # YAML reads a unit such as 1e+6 as a number.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


ROWS = "rows"  # as ``resample_by``: each row errs alone
UnitWord = Annotated[str, BeforeValidator(_text)]


class Entry(Frozen):
    """What all entries have: a name, and what they need of the runs."""

    name: Name
    simulated: bool = True  # False if it needs what no law gives, such as training curves
    stages: tuple[Name, ...] = ()  # of the grid, without each of which it cannot be made

    @property
    def needs(self) -> set[str]:
        """Returns the names of the fits and derived tables that it reads."""
        return set()

    def _changed(self, changes: dict[str, Any], where: str) -> Self:
        """Returns the entry with ``changes``, and without the keys that say such changes."""
        return parse(type(self), self.model_dump(exclude={"tiers", "short"}) | changes, where)


class Fit(Entry):
    """One law fitted to one table: its rows, the column of each variable, and what is held out."""

    law: str  # a law, such as sparsity.loss, or a form of it, such as allocation.loss:sqlog
    mapping: dict[str, str]  # variable (the law's, or one to derive from) -> the table's column
    units: dict[str, UnitWord] = {}  # variable -> its column's unit: M, percent, bits, PF-days, 1e6
    table: NoName = ""  # a derived table or a split fit's estimates; "": the study's
    sweep: NoName = ""  # one sweep of the grid, whose rows alone are used
    rows: str = ""  # rows to use, such as "S > 0 and C >= 1e11"; all by default
    split_by: str = ""  # a column: one fit for each of its values
    holdout: str = ""  # rows kept for validation, such as "S >= 0.98"
    # Tier -> what differs there, such as {demo: {holdout: S >= 0.93, bootstrap: 100}}
    tiers: dict[Tier, dict[str, Any]] = {}
    # Columns in which the trials of a model agree: of these rows only the one of least loss is used
    best_per: tuple[str, ...] = ()
    drop_missing: bool = False  # leave out rows in which a variable's cell is empty
    protocol: dict[str, Any] = {}  # overrides of the law's own fit protocol
    fixed: dict[str, Real] = {}  # parameter -> its value, which is not estimated
    # Parameter -> mean and standard deviation of what is known of it from elsewhere
    priors: dict[str, tuple[Real, Positive]] = {}
    weights: str = ""  # a column with the standard error of the response, in the response's unit
    bootstrap: Annotated[Count, Field(le=100_000)] = 200  # refits for the intervals
    # A column whose values are the bootstrap's blocks, or ROWS; empty: the table's own
    resample_by: str = ""
    # none: the rows come from other fits, so that their scatter about the law is not their error
    intervals: Literal["auto", "bootstrap", "none"] = "auto"
    level: Inside = 0.9  # of the intervals
    profile: tuple[str, ...] = ()  # parameters whose likelihood is profiled
    select: bool = False  # choose among the law's candidate forms by cross-validation

    @property
    def needs(self) -> set[str]:
        return {self.table} - {""}

    def at_tier(self, tier: Tier) -> Self:
        """Returns the entry as it is at ``tier``; a UserError refuses what no fit can have."""
        return self._changed(self.tiers.get(tier, {}), f"tiers.{tier}")


class Split(Frozen):
    """Rows that every law of a contest predicts without having been fitted to them."""

    name: Name
    use: str  # completes "to predict" by what such a prediction is good for, as "larger models"
    rows: str = ""  # the contest's rows to use, such as "C >= 1e11"; all by default
    holdout: str = ""  # the rows that are held out, such as "E >= 256"
    largest: str = ""  # or a column, the rows of whose largest value are held out
    rollout: str = ""  # or a column: fit below each of its values and predict above it
    # A split of the contest before this one, without the rows that are held out here: the law that
    # it puts first was chosen without them.
    chosen_by: NoName = ""

    @property
    def column(self) -> str:
        """Returns the column whose values say what is held out; empty if an expression does."""
        return self.largest or self.rollout

    @model_validator(mode="after")
    def _keeps_rows(self) -> Self:
        if sum(map(bool, (self.holdout.strip(), self.largest, self.rollout))) != 1:
            raise ValueError("it must have one of holdout, largest and rollout")
        return self


class Contest(Entry):
    """Laws fitted to the same rows of the study's table and judged on the same held-out rows."""

    laws: Annotated[tuple[str, ...], Field(min_length=2)]
    mapping: dict[str, str] = {}  # variable of any of them -> the table's column
    mappings: dict[str, dict[str, str]] = {}  # law -> its own mapping, where it differs
    sweep: NoName = ""
    rows: str = ""
    best_per: tuple[str, ...] = ()  # as of a fit
    splits: Filled[Split]
    protocol: dict[str, Any] = {}  # overrides of each law's own
    bootstrap: Annotated[Count, Field(le=100_000)] = 1000
    resample_by: str = ""  # a column whose values are blocks of rows with a common error
    level: Inside = 0.9
    beforehand: str = ""  # the law that was fixed before any law was judged
    # What differs where the project has short contests; with false they leave this one out
    short: dict[str, Any] | Literal[False] = {}

    @model_validator(mode="after")
    def _knows_its_laws(self) -> Self:
        if self.beforehand not in ("", *self.laws):
            raise ValueError(f"beforehand is {self.beforehand!r}, which is none of its laws")
        for i, split in enumerate(self.splits):
            if split.chosen_by not in ("", *(before.name for before in self.splits[:i])):
                raise ValueError(
                    f"{split.name}.chosen_by is {split.chosen_by!r}, no split before it"
                )
        return self

    def shortened(self) -> Self:
        """Returns the entry in its short form; a UserError refuses what no contest can have."""
        return self._changed(self.short or {}, "short")

    def fit(self, split: Split, mark: str) -> Fit:
        """Returns the entry of the fits at a split; column ``mark`` is 0 to fit, 1 if held out."""
        return Fit(
            name=f"{self.name}_{split.name}",
            law=",".join(self.laws),
            mapping=self.mapping,
            rows=f"{mark} >= 0",
            holdout=f"{mark} > 0",
            protocol=self.protocol,
            bootstrap=self.bootstrap,
            resample_by=self.resample_by or ROWS,
            intervals="bootstrap",
            level=self.level,
        )
