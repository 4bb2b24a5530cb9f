"""A simulated leverage study: its law's losses on the study's own grids, fits, derived tables."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.report import FitReport
from moelaws.fitting.rows import read_rows
from moelaws.grids.expand import expand
from moelaws.grids.sweep import Sweep
from moelaws.grids.text import CorpusChoice
from moelaws.spec.corpus import Text
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.spec.readers import Derived
from moelaws.spec.study import Study
from moelaws.tables.simulate import design, simulate
from repository import REPOSITORY
from study_case import Case, filled

TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.1)
# A dense curve at the demo's scale, and a leverage that grows within its few decades.
DEMO_LAW = {
    "alpha": 1800.0, "beta": -0.28, "b": 2.4, "a": 0.35, "d": -0.05, "gamma": 0.0167,
    "beta_G": -0.1, "A_start": 0.02, "A_max": 1e6,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """The study's demo, simulated as if it were trained."""

    noise: float = 0.004  # of ln L
    diverge_every: int = 0  # every so manieth run diverges; 0 for none


DEMO = Setting()
POOR = Setting(noise=0.03, diverge_every=7)


def table(study: Study, setting: Setting) -> pd.DataFrame:
    """The demo's table with losses of ``DEMO_LAW``."""
    frame = design(Sweep(study, "demo", tuple(expand(study.grids["demo"], TEXT, "leverage"))))
    dense = frame["kind"] == "dense"
    frame["G"] = frame["G"].fillna(2.0)  # the law has no dense kind: as all experts active
    law, compute = laws.fittable("leverage.loss"), {"C": "C_leverage_no_router"}
    rows = simulate(frame, law, DEMO_LAW, mapping=compute, noise=setting.noise).frame
    rows = rows.assign(source="trained", L_se=0.01, n_seeds=1)
    rows.loc[dense, "G"] = np.nan
    rows["balance_cv"] = 0.02 * rows["G"] ** 0.5 * np.exp(0.05 * np.sin(np.arange(len(rows))))
    if setting.diverge_every:
        diverged = np.arange(len(rows)) % setting.diverge_every == 2
        rows.loc[diverged, ["status", "L"]] = ["diverged", np.nan]
    return filled(rows)


def write_case(root: Path, setting: Setting) -> Case:
    """Fit, derive and write everything that figures, tables and claims read."""
    study = load_study("leverage", REPOSITORY)
    case = Case.of(study, root, table(study, setting))
    waiting: list[Fit | Derived] = [*study.fits, *study.derived]
    while waiting:
        for entry in list(waiting):
            fitted = isinstance(entry, Fit)
            needs = {entry.table} - {""} if fitted else {*entry.fits, *entry.derived}
            if needs <= {*case.fits, *case.derived}:
                if fitted:
                    case.add(_fitted(case, entry))
                else:
                    case.derive(entry.name)
                waiting.remove(entry)
    return case


def _fitted(case: Case, entry: Fit) -> FitReport:
    rows, units = read_rows(case.derived[entry.table] if entry.table else case.table)
    law = laws.fittable(entry.law)
    protocol = {"sample": 6} if law.protocol.grid else {}
    quick = entry.model_copy(update={"bootstrap": 12, "protocol": protocol})
    return fit(law, rows, quick, units=units)
