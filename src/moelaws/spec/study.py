"""A study as data: the grids of its tiers, its fits, derived tables, figures and claims."""

import os
from collections.abc import Callable, Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeGuard

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from moelaws.spec.base import Frozen, NonNegative, Positive, Whole, text_as, text_like
from moelaws.spec.corpus import CorpusSetting
from moelaws.spec.errors import UserError, located, or_nearest, refuse_unknown
from moelaws.spec.fit import Contest, Entry, Fit, Name
from moelaws.spec.grid import Grid, Stages
from moelaws.spec.kept_weights import KeptWeights
from moelaws.spec.readers import Claim, Derived, Figure, PaperTable, Reader, Shipped
from moelaws.spec.references import DOTTED, STUDIES, folder
from moelaws.spec.rows import RowExpression, parse_rows
from moelaws.spec.tier import Tier

Package = Annotated[str, text_like(DOTTED, "the dotted name of a Python package")]
RegisterName = Annotated[
    str, text_like("[a-z0-9]+(-[a-z0-9]+)*", "a name of the register, such as marin-v16")
]
DATASET = "dataset"  # the column that says which table of the register a row is of
# A study's key -> what one of its entries is called
KINDS = {
    "fits": "fit",
    "derived": "derived table",
    "figures": "figure",
    "tables": "table",
    "claims": "claim",
    "contests": "contest",
}


class Null(Frozen):
    """Runs without the effect of some claims, on which `moelaws make power` tries their rules."""

    name: Name
    says: str  # what holds for such runs, in a sentence
    law: str = ""  # fitted to the runs, it gives such losses; none if tests alone simulate it
    mapping: dict[str, str] = {}  # variable -> column, if it is not the one of the same name
    split_by: str = ""  # a column: the law is fitted to the runs of each value alone
    # Rows, such as "gate == sigmoid" -> by what the law's losses are multiplied there, and what it
    # is with the effect of the claims, if the rules are to be tried on that as well
    factors: dict[RowExpression, Positive] = {}
    effect: dict[RowExpression, Positive] | None = None


class Simulation(Frozen):
    """A law's losses with noise in place of training (``--config source=simulated``)."""

    law: str
    mapping: dict[str, str] = {}  # variable -> column, if it is not the one of the same name
    sweeps: tuple[Name, ...] = ()  # of the grid; all by default
    rows: str = ""  # the rows to keep of these, such as "C <= 1e20"
    noise: NonNegative = 0.003  # standard deviation of ln of the loss
    seed: Whole = 1
    assumed: str = ""  # the law's assumptions that no paper states
    protocol: dict[Name, dict[str, Any]] = {}  # fit -> overrides, for tables of thousands of rows


class ImportedTable(Frozen):
    """A table of others' runs in the study's package, or several of the register of public runs."""

    table: Shipped | Literal[""] = ""  # Parquet, as `moelaws import` wrote it
    mapping: Shipped | Literal[""] = ""  # the mapping file behind it
    # Names of the register. The first table must be here; the others join it where they are here.
    names: tuple[RegisterName, ...] = Field((), alias="register")
    called: str = "imported runs"  # what figures and verdicts call the runs, as "published runs"

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if bool(self.names) == bool(self.table or self.mapping) or bool(self.table) != bool(
            self.mapping
        ):
            raise ValueError("it must have either table and mapping, or register")
        return self


def _by_name(value: object) -> object:
    """Names the texts of a list: words and globs as they are written, data sets by their name."""
    if not isinstance(value, list | tuple):
        return value
    if not value:
        raise ValueError("there is none; name a text, or leave out corpora for the project's")
    named = {str(x.get("dataset") if isinstance(x, dict) else x): x for x in value}
    if len(named) < len(value):
        raise ValueError("a text is there twice; give each a name of its own, as in NAME: TEXT")
    return named


class Study(Frozen):
    """One paper's question. A study without grids and imported runs has no runs: it computes."""

    study: Name
    title: str
    package: Package | Literal[""] = ""  # of its code; moelaws.studies.<key> by default
    by_name: bool = False  # made only if asked for by name: `studies: all` leaves it out
    grids: dict[Tier, Grid] = {}
    # Name -> a text, in place of the project's one: the grids' sweeps are made on each of them
    corpora: Annotated[dict[str, CorpusSetting], BeforeValidator(_by_name)] = {}
    imported: ImportedTable | None = None  # published runs, in place of grids
    keep_weights: Annotated[KeptWeights, text_as("rows")] = KeptWeights()
    simulation: Simulation | None = None
    fits: tuple[Fit, ...] = ()
    contests: tuple[Contest, ...] = ()
    derived: tuple[Derived, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    claims: tuple[Claim, ...] = ()
    nulls: tuple[Null, ...] = ()
    _file: Path | None = PrivateAttr(None)
    _places: dict[str, str] = PrivateAttr({})  # tier -> where its grid stands, if in another file

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        fits, derived = [f.name for f in self.fits], [d.name for d in self.derived]
        pictures, nulls = [e.name for e in self.pictures], [null.name for null in self.nulls]
        for kind, names in (
            ("fits and derived tables", fits + derived),
            ("figures and tables", pictures),
            ("claims", [c.name for c in self.claims]),
            ("nulls", nulls),
            ("contests", [c.name for c in self.contests]),
            *((f"{c.name}: splits", [split.name for split in c.splits]) for c in self.contests),
        ):
            if twice := sorted({n for n in names if names.count(n) > 1}):
                raise ValueError(f"{kind}: {', '.join(twice)} is named twice")
        for fit in self.fits:
            refuse_unknown(
                f"{fit.name}: there is no derived table or fit", fit.needs, fits + derived
            )
        for entry in self.readers:
            refuse_unknown(f"{entry.name}: there is no fit", entry.fits, fits)
            refuse_unknown(f"{entry.name}: there is no derived table", entry.derived, derived)
        for claim in self.claims:
            refuse_unknown(f"{claim.name}: there is no figure", [claim.figure], pictures)
            refuse_unknown(f"{claim.name}: there is no null", {claim.null_model} - {""}, nulls)
        if self.simulation:
            refuse_unknown("simulation: there is no fit", self.simulation.protocol, fits)
        return self

    @model_validator(mode="after")
    def _runs_are_of_one_kind(self) -> Self:
        if self.imported and (self.grids or self.simulation):
            raise ValueError("imported: a study of imported runs has neither grids nor simulation")
        if not self.grids and (timed := next((d.name for d in self.derived if d.speed), "")):
            raise ValueError(f"{timed}: speed: a study without grids has no configurations to time")
        return self

    @model_validator(mode="after")
    def _fits_keep_texts_apart(self) -> Self:
        on_all = {s.name for g in self.grids.values() for s in g.on_each_corpus.sweeps}
        entries: tuple[Fit | Contest, ...] = (*self.fits, *self.contests)
        for fit in entries:
            mixes = fit.sweep in on_all if fit.sweep else on_all and not fit.needs
            if len(self.corpora) > 1 and mixes and getattr(fit, "split_by", "") != "corpus":
                raise ValueError(
                    f"{fit.name}: it would fit one law to the losses on several corpora; write "
                    "split_by: corpus, or corpora: first at the sweeps whose runs it reads"
                )
        return self

    @model_validator(mode="after")
    def _no_circles(self) -> Self:
        try:
            TopologicalSorter({e.name: e.needs for e in (*self.fits, *self.derived)}).prepare()
        except CycleError as error:
            raise ValueError("each needs the next: " + " <- ".join(error.args[1])) from None
        return self

    @property
    def pictures(self) -> tuple[Figure | PaperTable, ...]:
        """Returns the figures and tables."""
        return (*self.figures, *self.tables)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """Returns the entries that read fits and derived tables."""
        return (*self.derived, *self.figures, *self.tables, *self.claims)

    @property
    def home(self) -> str:
        """Returns the package that the references of its entries are relative to."""
        return self.package or f"{STUDIES}.{self.study}"

    @property
    def sweep_names(self) -> set[str]:
        """Returns the sweeps that its grids name at any tier."""
        return {sweep.name for grid in self.grids.values() for sweep in grid.sweeps} - {""}

    def grid_of(self, tier: Tier, stages: Stages) -> Grid | None:
        """Returns the grid of a tier, or its ``stages`` alone; None if it has none."""
        with located(self.place(tier)):
            return self.grids[tier].of_stages(stages) if tier in self.grids else None

    def lacking(self, tier: Tier, stages: Stages = "all") -> set[str]:
        """Returns the sweeps that its grids have and ``tier`` lacks; none if it has no grid."""
        grid = self.grid_of(tier, stages)
        return self.sweep_names - {sweep.name for sweep in grid.sweeps} if grid else set()

    def unchosen(self, entry: Any, tier: Tier, stages: Stages) -> set[str]:
        """Returns the stages of the tier's grid that an entry needs and ``stages`` has not."""
        if stages == "all" or tier not in self.grids:
            return set()
        return {*entry.stages} & {*self.grids[tier].stages} - {*stages}

    @property
    def has_runs(self) -> bool:
        """Returns whether there is a table of runs, trained here or imported."""
        return bool(self.grids or self.imported)

    def shipped(self, name: str) -> Path:
        """Returns the path, from the current folder, of a file of its package as data/a.csv."""
        path = folder(self.home) / name
        if not path.is_file():
            raise UserError(f"{self.file}: {name}: the package {self.home} has no such file")
        return Path(os.path.relpath(path))

    @property
    def file(self) -> Path:
        """Returns the YAML file that it was read from."""
        return self._file or Path("config/studies") / f"{self.study}.yaml"

    def place(self, tier: str) -> str:
        """Returns where its grid of a tier stands, or would stand, for messages."""
        return self._places.get(tier, f"{self.file}, grids.{tier}")

    @property
    def reference(self) -> str:
        """Returns its key or, for a user's own study, one spelling of its path, for commands."""
        if self.file.parent == Path("config/studies"):
            return self.study
        return os.path.relpath(self.file.parent.resolve() / self.file.name)

    def entry(self, key: str, name: str) -> Any:
        """Returns the entry ``name`` below a ``key`` of the study, such as figures."""
        entries = {entry.name: entry for entry in getattr(self, key)}
        if name not in entries:
            near = or_nearest(name, entries, "there are")
            raise UserError(f"study {self.study!r} has no {KINDS[key]} {name!r}{near}")
        return entries[name]

    def fit(self, name: str) -> Fit:
        entry: Fit = self.entry("fits", name)
        return entry

    def derived_table(self, name: str) -> Derived:
        entry: Derived = self.entry("derived", name)
        return entry

    def at_tier(self, tier: Tier, stages: Stages = "all") -> Self:
        """Returns the study without entries for which ``tier`` lacks sweeps, weights or speeds.

        Its fits are those of the tier, whose grid has the ``stages`` alone.
        """
        lacking, keep = self.lacking(tier, stages), self.keep_weights
        keeps = keep.keeps_any(tier) and keep.sweep not in lacking
        left = self._without(
            lambda entry: (
                sweep_of(entry) in lacking
                or bool(self.unchosen(entry, tier, stages))
                or (reads_weights(entry) and not keeps)
                or (reads_speed(entry) and tier not in entry.speed)
            )
        )
        fits = tuple(fit.at_tier(tier) for fit in left.fits)
        kept = keep if keeps else KeptWeights()
        grid = self.grid_of(tier, stages)
        grids = self.grids | ({tier: grid} if grid else {})
        return left.model_copy(update={"fits": fits, "keep_weights": kept, "grids": grids})

    def with_short_contests(self) -> Self:
        """Returns the study with the contests of a first call, each in its short form."""
        short = tuple(c.shortened() for c in self.contests if c.short is not False)
        return self.model_copy(update={"contests": short})

    def of_simulated(self) -> Self:
        """Returns the study without what simulated losses cannot give and what depends on that.

        That is what says so, what reads measured speeds, and what is of a sweep not simulated.
        """
        sweeps = self.simulation.sweeps if self.simulation else ()
        left = self._without(
            lambda entry: (
                not entry.simulated
                or reads_speed(entry)
                or bool(sweeps and sweep_of(entry) not in ("", *sweeps))
            )
        )
        overrides = self.simulation.protocol if self.simulation else {}
        fits = tuple(
            f.model_copy(update={"protocol": {**f.protocol, **overrides.get(f.name, {})}})
            for f in left.fits
        )
        return left.model_copy(update={"fits": fits, "keep_weights": KeptWeights()})

    def without(self, absent: Collection[str]) -> Self:
        """Returns the study without the fits and contests of data sets that are ``absent``."""

        def is_of_absent(entry: Entry) -> bool:
            clauses = parse_rows(entry.rows) if isinstance(entry, Fit | Contest) else ()
            return any((c.column, c.op) == (DATASET, "==") and c.value in absent for c in clauses)

        return self._without(is_of_absent)

    def _without(self, cannot: Callable[[Entry], bool]) -> Self:
        """Returns the study without the entries that cannot be made and without their readers."""
        sources = {entry.name for entry in (*self.fits, *self.derived)}
        pictures = {entry.name for entry in self.pictures}

        def stays(entry: Entry) -> bool:
            drawn = not isinstance(entry, Claim) or entry.figure in pictures
            return drawn and entry.needs <= sources and not cannot(entry)

        left = {key: tuple(filter(stays, getattr(self, key))) for key in KINDS}
        if all(left[key] == getattr(self, key) for key in KINDS):
            return self
        return self.model_copy(update=left)._without(cannot)


def reads_weights(entry: Entry) -> bool:
    """Returns whether an entry reads kept weights, or what is computed from them."""
    return isinstance(entry, Derived) and (entry.weights or entry.hidden or entry.scores)


def reads_speed(entry: Entry) -> TypeGuard[Derived]:
    """Returns whether an entry reads measured speeds, which no law predicts."""
    return isinstance(entry, Derived) and bool(entry.speed)


def sweep_of(entry: Entry) -> str:
    """Returns the one sweep of the grid whose runs an entry reads; empty if it reads others."""
    if isinstance(entry, Fit | Contest):
        return entry.sweep
    return str(entry.arguments.get("sweep", "")) if isinstance(entry, Reader) else ""
