"""A study: the grids of its tiers, its fits, derived tables, figures and claims, all of it data."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from moelaws.spec.base import Count, Fraction, Frozen, NonNegative, Whole
from moelaws.spec.grid import Grid

# Names become file names and Snakemake wildcards.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
# A module below the package of its kind: optima, or leverage.points.
Code = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$")
]
Tier = Literal["demo", "gpu", "paper"]
TIERS: tuple[Tier, ...] = ("demo", "gpu", "paper")


def _text(value: object) -> object:
    # YAML reads a unit such as 1e+6 as a number.
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


UnitWord = Annotated[str, BeforeValidator(_text)]


class Entry(Frozen):
    """What the study's entries share: where their losses may come from."""

    simulated: bool = True  # False: it needs what no law gives, such as training curves


class Fit(Entry):
    """One law fitted to one table: which rows, which column is which variable, what is held out."""

    name: Name
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
    bootstrap: Count = 200  # refits for the intervals
    resample_by: str = ""  # a column whose values are the bootstrap's blocks; rows by default
    intervals: Literal["auto", "bootstrap", "student"] = "auto"
    level: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9  # of the intervals
    profile: tuple[str, ...] = ()  # parameters whose likelihood is profiled
    select: bool = False  # choose among the law's candidate forms by cross-validation


class Reader(Entry):
    """An entry that reads the study's table and, of its fits and derived tables, these alone."""

    fits: tuple[Name, ...] = ()
    derived: tuple[Name, ...] = ()


class Derived(Reader):
    """A table made from a study's table and fits by ``moelaws.analysis.<code>``."""

    name: Name
    code: Code
    hidden: bool = False  # reads the hidden states of the runs whose weights are kept


class Figure(Reader):
    """A picture of the paper, drawn by ``moelaws.figures.<study>.<code>``."""

    id: Name  # as in the paper: F1a
    code: Code
    caption: str


class PaperTable(Reader):
    """A table of the paper, set by ``moelaws.figures.<study>.<code>``."""

    id: Name  # as in the paper: T3
    code: Code
    caption: str


class Claim(Reader):
    """A claim of the paper, judged by ``moelaws.claims.<study>``."""

    id: Name
    figure: Name  # to look at


class Simulation(Frozen):
    """Losses of a law in place of training, with noise (``--config source=simulated``)."""

    law: str
    mapping: dict[str, str] = {}  # variable -> column; others go by their own names
    sweeps: tuple[Name, ...] = ()  # of the grid; all by default
    rows: str = ""  # of those, such as "C <= 1e20"
    noise: NonNegative = 0.003  # standard deviation of ln of the loss
    seed: Whole = 1
    assumed: str = ""  # what the law takes for granted that no paper states
    protocol: dict[Name, dict[str, Any]] = {}  # fit -> overrides, for tables of thousands of rows


class Study(Frozen):
    """One paper's question. A study without grids has no runs: it computes."""

    study: Name
    title: str
    by_name: bool = False  # made when it is asked for by its name; `studies: all` leaves it out
    grids: dict[Tier, Grid] = {}
    keep_weights: str = ""  # rows whose runs' final weights are kept, such as "C >= 1e11"; none
    simulation: Simulation | None = None
    fits: tuple[Fit, ...] = ()
    derived: tuple[Derived, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    claims: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _names_resolve(self) -> Study:
        derived_names = [d.name for d in self.derived]
        pictures = [e.id for e in self.pictures]
        tables = {*(f.name for f in self.fits), *derived_names}
        for kind, names in (
            ("fits and derived tables", [*(f.name for f in self.fits), *derived_names]),
            ("figures and tables", pictures),
            ("claims", [c.id for c in self.claims]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ValueError(f"{kind}: {', '.join(twice)} is named twice")
        for fit in self.fits:
            if fit.table and fit.table not in tables - {fit.name}:
                raise ValueError(
                    f"{fit.name}: table: no derived table or other fit {fit.table!r}; known: "
                    f"{', '.join(sorted(tables - {fit.name})) or 'none'}"
                )
        fits, derived = {f.name for f in self.fits}, set(derived_names)
        for entry in self.readers:
            for unknown in set(entry.fits) - fits:
                raise ValueError(f"{label(entry)} needs the fit {unknown!r}; known: {sorted(fits)}")
            for unknown in set(entry.derived) - derived:
                raise ValueError(
                    f"{label(entry)} needs the derived table {unknown!r}; known: {sorted(derived)}"
                )
        for unknown in set(self.simulation.protocol if self.simulation else ()) - fits:
            raise ValueError(f"simulation: protocol: no fit {unknown!r}; known: {sorted(fits)}")
        for claim in self.claims:
            if claim.figure not in pictures:
                raise ValueError(f"{claim.id}: figure: the study has no figure {claim.figure!r}")
        return self

    @model_validator(mode="after")
    def _no_circles(self) -> Study:
        needs: dict[str, set[str]] = {f.name: {f.table} - {""} for f in self.fits}
        needs |= {d.name: {*d.fits, *d.derived} for d in self.derived}
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            raise ValueError("each needs the next: " + " <- ".join(error.args[1])) from None
        return self

    @property
    def pictures(self) -> tuple[Figure | PaperTable, ...]:
        """Figures and tables."""
        return (*self.figures, *self.tables)

    @property
    def readers(self) -> tuple[Derived | Figure | PaperTable | Claim, ...]:
        """Entries that read fits and derived tables."""
        return (*self.derived, *self.figures, *self.tables, *self.claims)

    def fit(self, name: str) -> Fit:
        return next(f for f in self.fits if f.name == name)

    def of_simulated(self) -> Study:
        """The study without what simulated losses cannot give, nor what needs that."""
        lost: set[str] = set()  # fits and derived tables
        while True:
            more = {f.name for f in self.fits if not f.simulated or f.table in lost}
            more |= {d.name for d in self.derived if _lacks(d, lost)}
            if more <= lost:
                break
            lost |= more
        pictures = {e.id for e in self.pictures if not _lacks(e, lost)}
        left = {
            "fits": tuple(self._simulated(f) for f in self.fits if f.name not in lost),
            "derived": tuple(d for d in self.derived if d.name not in lost),
            "figures": tuple(f for f in self.figures if f.id in pictures),
            "tables": tuple(t for t in self.tables if t.id in pictures),
            "claims": tuple(c for c in self.claims if c.figure in pictures and not _lacks(c, lost)),
        }
        return self.model_copy(update={**left, "keep_weights": ""})

    def _simulated(self, fit: Fit) -> Fit:
        override = self.simulation.protocol.get(fit.name, {}) if self.simulation else {}
        return fit.model_copy(update={"protocol": {**fit.protocol, **override}})


def _lacks(entry: Reader, lost: set[str]) -> bool:
    return not entry.simulated or bool(lost & {*entry.fits, *entry.derived})


def label(entry: Fit | Derived | Figure | PaperTable | Claim) -> str:
    """What an entry of a study goes by."""
    return entry.name if isinstance(entry, Fit | Derived) else entry.id
