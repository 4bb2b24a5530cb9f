"""A study: the grids of its tiers, its fits, derived tables, figures and claims, all of it data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from moelaws.spec.base import (
    Count,
    Fraction,
    Frozen,
    NonNegative,
    Positive,
    Real,
    Whole,
    text_like,
)
from moelaws.spec.errors import UserError, or_nearest
from moelaws.spec.grid import Grid
from moelaws.spec.references import STUDIES, folder

# Names become file names and Snakemake wildcards.
Name = Annotated[
    str,
    text_like(
        "[A-Za-z][A-Za-z0-9_]*",
        "a name of letters, digits and underscores that begins with a letter",
    ),
]
_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
Package = Annotated[str, text_like(_DOTTED, "the dotted name of a Python package")]
# Module and function below the study's package: figures.optima:draw.
Reference = Annotated[
    str,
    text_like(rf"{_DOTTED}:[A-Za-z_]\w*", "a module and its function, such as figures.optima:draw"),
]
# A file below the study's package: data/runs.parquet.
Shipped = Annotated[
    str,
    text_like(
        r"[A-Za-z0-9]\w{0,99}([./-]\w{1,100}){0,19}",
        "the path of a file below the study's package, such as data/runs.parquet",
    ),
]
Tier = Literal["demo", "workstation", "gpu", "paper"]
TIERS: tuple[Tier, ...] = get_args(Tier)
CPU_TIERS: tuple[Tier, ...] = ("demo", "workstation")  # sized for CPU cores; the others for GPUs
# A study's key -> what one of its entries is called.
KINDS = {
    "fits": "fit",
    "derived": "derived table",
    "figures": "figure",
    "tables": "table",
    "claims": "claim",
}


def _text(value: object) -> object:
    # YAML reads a unit such as 1e+6 as a number.
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


UnitWord = Annotated[str, BeforeValidator(_text)]


class Entry(Frozen):
    """Entries share where their losses may come from."""

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
    bootstrap: Annotated[Count, Field(le=100_000)] = 200  # refits for the intervals
    resample_by: str = ""  # a column whose values are the bootstrap's blocks; rows by default
    intervals: Literal["auto", "bootstrap", "student"] = "auto"
    level: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9  # of the intervals
    profile: tuple[str, ...] = ()  # parameters whose likelihood is profiled
    select: bool = False  # choose among the law's candidate forms by cross-validation
    # A fit that would take longer is refused; it decides no number, so that no report holds it.
    max_hours: Annotated[Positive, Field(exclude=True)] = 24.0

    def uses_student(self, objective: str) -> bool:
        """Whether the intervals are Student's t, for which nothing is refitted."""
        if self.intervals == "auto":
            return objective == "squared" and not self.resample_by
        return self.intervals == "student"


class Reader(Entry):
    """An entry whose code reads the study's table and, of its fits and derived tables, these."""

    name: Name
    code: Reference  # the function that makes it, below the study's package: figures.optima:draw
    arguments: dict[Name, Any] = Field({}, alias="with")  # keywords of the function
    fits: tuple[Name, ...] = ()
    derived: tuple[Name, ...] = ()


class Derived(Reader):
    """A table made from a study's table and fits."""

    hidden: bool = False  # reads the hidden states of the runs whose weights are kept
    data: tuple[Shipped, ...] = ()  # files of the study's package that it reads


class Figure(Reader):
    """A picture of the paper, named as there: F1a."""

    caption: str


class PaperTable(Reader):
    """A table that the paper prints, named as there: T3."""

    caption: str


class Expected(Frozen):
    """Where the interval of a claim's number lies if the claim holds."""

    above: Real | None = None
    below: Real | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Expected:
        if self.above is None and self.below is None:
            raise ValueError("it must have above or below, or both")
        return self


class Claim(Reader):
    """What the paper claims, and the rule in code that measures it."""

    statement: str  # what the paper claims, in our words
    source: str  # paper key and section, figure or equation
    rule: str  # what the code does, in a sentence or two
    expect: Expected  # supported where the measured interval lies within, not where it lies outside
    needed: str = ""  # what would decide, where the runs cannot tell
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


class ImportedTable(Frozen):
    """The table of somebody else's runs, which the study's package holds, and how it was made."""

    table: Shipped  # Parquet, as `moelaws import` wrote it
    mapping: Shipped  # the mapping file behind it
    called: str = "imported runs"  # what figures and verdicts call them, such as published runs


class Study(Frozen):
    """One paper's question. A study without grids and imported runs has no runs: it computes."""

    study: Name
    title: str
    package: Package | Literal[""] = ""  # of its code; moelaws.studies.<key> by default
    by_name: bool = False  # made when it is asked for by its name; `studies: all` leaves it out
    grids: dict[Tier, Grid] = {}
    imported: ImportedTable | None = None  # in place of grids: runs that are published
    keep_weights: str = ""  # rows whose runs' final weights are kept, such as "C >= 1e11"; none
    simulation: Simulation | None = None
    fits: tuple[Fit, ...] = ()
    derived: tuple[Derived, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    claims: tuple[Claim, ...] = ()
    _file: Path | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _names_resolve(self) -> Study:
        fits, derived = [f.name for f in self.fits], [d.name for d in self.derived]
        pictures = [e.name for e in self.pictures]
        for kind, names in (
            ("fits and derived tables", fits + derived),
            ("figures and tables", pictures),
            ("claims", [c.name for c in self.claims]),
        ):
            if twice := sorted({n for n in names if names.count(n) > 1}):
                raise ValueError(f"{kind}: {', '.join(twice)} is named twice")
        for fit in self.fits:
            tables = sorted({*fits, *derived} - {fit.name})
            if fit.table and fit.table not in tables:
                raise ValueError(
                    f"{fit.name}: table: no derived table or other fit {fit.table!r}; known: "
                    f"{', '.join(tables) or 'none'}"
                )
        for entry in self.readers:
            for unknown in set(entry.fits) - set(fits):
                raise ValueError(f"{entry.name} needs the fit {unknown!r}; known: {sorted(fits)}")
            for unknown in set(entry.derived) - set(derived):
                raise ValueError(
                    f"{entry.name} needs the derived table {unknown!r}; known: {sorted(derived)}"
                )
        for unknown in set(self.simulation.protocol if self.simulation else ()) - set(fits):
            raise ValueError(f"simulation: protocol: no fit {unknown!r}; known: {sorted(fits)}")
        for claim in self.claims:
            if claim.figure not in pictures:
                raise ValueError(f"{claim.name}: figure: the study has no figure {claim.figure!r}")
        return self

    @model_validator(mode="after")
    def _runs_are_of_one_kind(self) -> Study:
        if self.imported and (self.grids or self.simulation):
            raise ValueError("imported: a study of imported runs has neither grids nor simulation")
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

    @property
    def home(self) -> str:
        """The package that the references of its entries are relative to."""
        return self.package or f"{STUDIES}.{self.study}"

    @property
    def has_runs(self) -> bool:
        """Whether there is a table of runs, trained here or imported."""
        return bool(self.grids or self.imported)

    def shipped(self, name: str) -> Path:
        """Returns the path, from the current folder, of a file of its package, such as data/a.csv.

        Raises:
            UserError: where the package or the file is not there.
        """
        path = folder(self.home) / name
        if not path.is_file():
            raise UserError(f"{self.file}: {name}: the package {self.home} has no such file")
        return Path(os.path.relpath(path))

    @property
    def imported_files(self) -> tuple[Path, Path]:
        """The imported table and its mapping.

        Raises:
            UserError: where one is not there, or the study imports none.
        """
        if self.imported is None:
            raise UserError(f"{self.file}: the study imports no table")
        return self.shipped(self.imported.table), self.shipped(self.imported.mapping)

    @property
    def file(self) -> Path:
        """The YAML file that it was read from."""
        return self._file or Path("config/studies") / f"{self.study}.yaml"

    @property
    def reference(self) -> str:
        """What commands take as the study: its key, or the file of a user's own."""
        return self.study if self.file.parent == Path("config/studies") else str(self.file)

    def read_from(self, file: Path) -> Study:
        """Returns the study, which remembers the file."""
        self._file = file
        return self

    def entry(self, key: str, name: str) -> Any:
        """Returns the entry ``name`` below the study's ``key``, such as figures.

        Raises:
            UserError: where there is none.
        """
        return _named(self, key, getattr(self, key), name)

    def fit(self, name: str) -> Fit:
        """Returns the fit ``name``."""
        return _named(self, "fits", self.fits, name)

    def derived_table(self, name: str) -> Derived:
        """Returns the derived table ``name``."""
        return _named(self, "derived", self.derived, name)

    def of_simulated(self) -> Study:
        """Returns the study without what simulated losses cannot give, nor what needs that."""
        lost: set[str] = set()  # fits and derived tables
        while True:
            more = {f.name for f in self.fits if not f.simulated or f.table in lost}
            more |= {d.name for d in self.derived if _lacks(d, lost)}
            if more <= lost:
                break
            lost |= more
        pictures = {e.name for e in self.pictures if not _lacks(e, lost)}
        left = {
            "fits": tuple(self._simulated(f) for f in self.fits if f.name not in lost),
            "derived": tuple(d for d in self.derived if d.name not in lost),
            "figures": tuple(f for f in self.figures if f.name in pictures),
            "tables": tuple(t for t in self.tables if t.name in pictures),
            "claims": tuple(c for c in self.claims if c.figure in pictures and not _lacks(c, lost)),
        }
        return self.model_copy(update={**left, "keep_weights": ""})

    def _simulated(self, fit: Fit) -> Fit:
        override = self.simulation.protocol.get(fit.name, {}) if self.simulation else {}
        return fit.model_copy(update={"protocol": {**fit.protocol, **override}})


def _lacks(entry: Reader, lost: set[str]) -> bool:
    return not entry.simulated or bool(lost & {*entry.fits, *entry.derived})


E = TypeVar("E", Fit, Derived)


def _named(study: Study, key: str, entries: Sequence[E], name: str) -> E:
    for entry in entries:
        if entry.name == name:
            return entry
    known = or_nearest(name, [entry.name for entry in entries], "there are")
    raise UserError(f"study {study.study!r} has no {KINDS[key]} {name!r}{known}")
