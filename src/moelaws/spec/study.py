"""A study: the grids of its tiers, its fits, its derived tables and its figures, all of it data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from moelaws.spec.base import Count, Fraction, Frozen
from moelaws.spec.grid import Grid

# Names become file names and Snakemake wildcards.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Tier = Literal["demo", "gpu", "paper"]
TIERS: tuple[Tier, ...] = ("demo", "gpu", "paper")


def _text(value: object) -> object:
    # YAML reads a unit such as 1e+6 as a number.
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


UnitWord = Annotated[str, BeforeValidator(_text)]


class Fit(Frozen):
    """One law fitted to one table: which rows, which column is which variable, what is held out."""

    name: Name
    law: str  # a law, such as sparsity.loss, or a form of it, such as allocation.loss:sqlog
    mapping: dict[str, str]  # variable, of the law or to derive from -> the table's column
    units: dict[str, UnitWord] = {}  # variable -> its column's unit: M, percent, bits, PF-days, 1e6
    rows: str = ""  # rows to use, such as "S > 0 and C >= 1e11"; all by default
    split_by: str = ""  # a column: one fit for each of its values
    holdout: str = ""  # rows kept for validation, such as "S >= 0.98"
    rollout: str = ""  # a column such as C: fit below each of its values, predict above
    protocol: dict[str, Any] = {}  # overrides of the law's own fit protocol
    weights: str = ""  # a column with the standard error of the response, in the response's unit
    bootstrap: Count = 200  # refits for the intervals
    resample_by: str = ""  # a column whose values are the bootstrap's blocks; rows by default
    intervals: Literal["auto", "bootstrap", "student"] = "auto"
    level: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9  # of the intervals
    profile: tuple[str, ...] = ()  # parameters whose likelihood is profiled
    select: bool = False  # choose among the law's candidate forms by cross-validation


class Derived(Frozen):
    """A table made from a study's table and fits by ``moelaws.analysis.<code>``."""

    name: Name
    code: Name
    fits: tuple[Name, ...] = ()


class Figure(Frozen):
    """A picture of the paper, drawn by ``moelaws.figures.<study>.<code>``."""

    id: Name  # as in the paper: F1a
    code: Name
    caption: str
    fits: tuple[Name, ...] = ()
    derived: tuple[Name, ...] = ()


class Study(Frozen):
    """One paper's question."""

    study: Name
    title: str
    grids: dict[Tier, Grid]
    keep_weights: str = ""  # rows whose runs' final weights are kept, such as "C >= 1e11"; none
    fits: tuple[Fit, ...] = ()
    derived: tuple[Derived, ...] = ()
    figures: tuple[Figure, ...] = ()

    @model_validator(mode="after")
    def _names_resolve(self) -> Study:
        for kind, names in (
            ("fits", [f.name for f in self.fits]),
            ("derived", [d.name for d in self.derived]),
            ("figures", [f.id for f in self.figures]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{kind}: {', '.join(twice)} is named twice")
        fits = {f.name for f in self.fits}
        derived = {d.name for d in self.derived}
        entries: tuple[Derived | Figure, ...] = (*self.derived, *self.figures)
        for entry in entries:
            label = entry.id if isinstance(entry, Figure) else entry.name
            for unknown in set(entry.fits) - fits:
                raise ValueError(f"{label} needs the fit {unknown!r}; known: {sorted(fits)}")
            if isinstance(entry, Figure):
                for unknown in set(entry.derived) - derived:
                    raise ValueError(
                        f"{label} needs the derived table {unknown!r}; known: {sorted(derived)}"
                    )
        return self

    def fit(self, name: str) -> Fit:
        return next(f for f in self.fits if f.name == name)
