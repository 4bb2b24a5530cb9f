"""The study's own fits and derived tables of the shipped runs, made once a session."""

from functools import cache
from pathlib import Path

import pytest

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import read_runs
from moelaws.figures.draw import make
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.project import load_study
from moelaws.tables.at_hand import imported_files
from repository import REPOSITORY

STUDY = load_study("routing", REPOSITORY)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """The runs, every fit as the study asks for it (with fewer refits), every derived table."""
    root: Path = tmp_path_factory.mktemp("routing")
    (table,) = imported_files(STUDY)
    frame = read_runs(table)
    fits = {}
    for entry in STUDY.fits:
        refitted = {"bootstrap": 20} if not entry.protocol else {}
        spec = entry.model_copy(update=refitted)
        fits[entry.name] = root / f"{entry.name}.json"
        write_fit(fit(laws.fittable(entry.law), frame, spec), fits[entry.name])
    data = {name: STUDY.shipped(name) for entry in STUDY.derived for name in entry.data}
    derived = {entry.name: root / f"{entry.name}.parquet" for entry in STUDY.derived}
    made = FittedInputs(frame=frame, table_file=table, fits=fits, derived_tables=derived, data=data)
    for name, path in derived.items():
        derive(STUDY, name, made, path)
    return made


@pytest.fixture(scope="session")
def make_sheet(inputs):
    """A figure of the study, made once a session."""
    return cache(lambda figure: make(STUDY, figure, inputs))
