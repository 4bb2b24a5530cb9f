"""A study whose losses a test simulates: its table, fits and derived tables, in files."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import read_runs
from moelaws.figures.draw import make
from moelaws.figures.sheet import Sheet
from moelaws.files.layout import Results, TierFolder
from moelaws.fitting.diagnostics import Diagnostics
from moelaws.fitting.report import FitReport, GroupFit, draws_path, write_fit
from moelaws.records.paired import PairedLosses
from moelaws.spec.fit import Fit
from moelaws.spec.study import Study
from moelaws.tables.parquet import write_table
from moelaws.tables.schema import COLUMNS, TRAINED_COLUMNS

FILL = {"string": "x", "int": 1, "float": 1.0, "bool": False}


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """A study's table: what ``frame`` does not give, or lacks where it must not, is made up."""
    frame = frame.copy()
    for column in COLUMNS:
        lacks = column.name in frame and not column.nullable and frame[column.name].isna().any()
        if column.name not in frame or lacks:
            frame[column.name] = FILL[column.type]
    return frame[[column.name for column in COLUMNS]]


OPTIMUM = Diagnostics(0, "huber", 1e-3, 0.0, 1.0)


def as_fitted(
    spec: Fit, parts: list[GroupFit], draws: pd.DataFrame, source: str = "simulated"
) -> FitReport:
    """A report of ``parts`` as if ``spec`` had been fitted."""
    entry = spec.model_dump(mode="json")
    return FitReport(
        spec.law, spec.name, source, spec.split_by, 0.9, parts, entry, {}, {}, draws=draws
    )


def write_documents(results: Results, runs: pd.DataFrame, n: int, seed: int) -> PairedLosses:
    """Writes losses of the ``runs`` on ``n`` documents, mostly common to all, which sum to L."""
    from moelaws.training.evaluation import DocumentLosses  # it loads torch

    rng = np.random.default_rng(seed)
    tokens = rng.geometric(1 / 700, n)
    rates = 0.4 * rng.standard_normal(n) + 0.02 * rng.standard_normal((len(runs), n))
    nats = (rates + (runs["L"].to_numpy() - rates @ tokens / tokens.sum())[:, None]) * tokens
    for run_id, own in zip(runs["run_id"], nats, strict=True):
        losses = DocumentLosses(np.arange(n), tokens, own)
        losses.write(results.run(run_id) / "documents.parquet")
    return PairedLosses(tuple(runs["run_id"]), tokens, nats)


@dataclass(frozen=True)
class Case:
    """A study with its files below ``root``; each of its figures is drawn once."""

    study: Study
    root: Path
    fits: dict[str, Path] = field(default_factory=dict)
    derived: dict[str, Path] = field(default_factory=dict)
    sheets: dict[str, Sheet] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, root: Path, frame: pd.DataFrame) -> "Case":
        case = cls(study, root)
        columns = [column for column in TRAINED_COLUMNS if column.name in frame]
        write_table(frame, columns, case.table, {"study": study.study})
        return case

    @property
    def table(self) -> Path:
        return self.root / "tables" / f"{self.study.study}.parquet"

    @property
    def results(self) -> Results:
        return Results(self.root / "results")

    @property
    def inputs(self) -> FittedInputs:
        return FittedInputs(
            frame=read_runs(self.table), fits=self.fits, derived_tables=self.derived,
            results=self.results,
        )  # fmt: skip

    def add(self, *reports: FitReport) -> None:
        for report in reports:
            path = self.root / "fits" / f"{report.name}.json"
            write_fit(report, path)
            self.fits[report.name] = path

    def derive(self, *names: str) -> None:
        for name in names:
            path = self.root / "derived" / f"{name}.parquet"
            derive(self.study, name, self.inputs, path)
            self.derived[name] = path

    def put(self, folder: TierFolder) -> None:
        """Copies the table, the derived tables and the fits to their places in a tier."""
        name = self.study.study
        places = {self.table: folder.table(name)}
        places |= {path: folder.derived(name, own) for own, path in self.derived.items()}
        for own, path in self.fits.items():
            places |= {path: folder.fit(name, own), draws_path(path): folder.draws(name, own)}
        for path, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)

    def sheet(self, figure: str) -> Sheet:
        if figure not in self.sheets:
            self.sheets[figure] = make(self.study, figure, self.inputs)
        return self.sheets[figure]
