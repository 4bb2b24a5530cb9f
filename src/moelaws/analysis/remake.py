"""Makes a study's fits and derived tables in a folder, as the workflow would of other losses."""

from collections.abc import Callable, Iterator, Mapping, Set
from graphlib import TopologicalSorter

import pandas as pd

from moelaws import laws
from moelaws.analysis.derive import derive
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import read_runs
from moelaws.files.layout import TierFolder
from moelaws.fitting.fit import fit
from moelaws.fitting.report import FitReport, write_fit
from moelaws.fitting.rollout import Progress
from moelaws.fitting.rows import read_rows
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.spec.readers import Derived, Reader
from moelaws.spec.study import Study
from moelaws.tables.at_hand import fitted_table


def with_starts(entry: Fit, sample: int, draws: int | None = None) -> Fit:
    """Returns a fit of at most ``sample`` starts, if its law's grid has more, and ``draws`` refits.

    Without ``draws`` a fit that says how many starts it has keeps them, and all its refits.
    """
    own = entry.protocol.get("sample", laws.fittable(entry.law).protocol.n_starts)
    more = own > sample and (draws is not None or "sample" not in entry.protocol)
    protocol = entry.protocol | ({"sample": sample} if more else {})
    refits = entry.bootstrap if draws is None else min(draws, entry.bootstrap)
    return entry.model_copy(update={"protocol": protocol, "bootstrap": refits})


def remake(
    study: Study,
    folder: TierFolder,
    names: Set[str],
    progress: Callable[[str], Progress],
    skipped: Callable[[Fit, pd.DataFrame, Mapping[str, str]], bool] = lambda *_: False,
) -> Iterator[tuple[Fit | Derived, FitReport | None, str]]:
    """Makes the fits and derived tables ``names`` of a study, and those that they need.

    The study's table lies in ``folder``, where all are written. Yields each with its report, if it
    is a fit, or with the reason why it could not be made. A fit is ``skipped`` by its entry, its
    table and the table's units.
    """
    lost: dict[str, str] = {}  # fits and derived tables -> why
    for entry, needs in _steps(study, names):
        report = None
        try:
            if missing := sorted(needs & lost.keys()):
                raise UserError(f"it needs {missing[0]}: {lost[missing[0]]}")
            if isinstance(entry, Derived):
                path = folder.derived(study.study, entry.name)
                derive(study, entry.name, inputs_of(study, entry, folder), path)
            else:
                frame, units = read_rows(fitted_table(study, entry, folder))
                if skipped(entry, frame, units):
                    continue
                with located(f"the table of {entry.name}"):
                    law, shown = laws.fittable(entry.law), progress(entry.name)
                    report = fit(law, frame, entry, units=units, progress=shown, calibrated=False)
                write_fit(report, folder.fit(study.study, entry.name))
        except UserError as error:
            lost[entry.name] = str(error)
        yield entry, report, lost.get(entry.name, "")


def inputs_of(study: Study, entry: Reader, folder: TierFolder) -> FittedInputs:
    """Returns what ``entry`` of a study reads in ``folder``."""
    key = study.study
    return FittedInputs(
        frame=read_runs(folder.table(key)),
        fits={name: folder.fit(key, name) for name in entry.fits},
        derived_tables={name: folder.derived(key, name) for name in entry.derived},
        data={name: study.shipped(name) for name in getattr(entry, "data", ())},
    )


def _steps(study: Study, names: Set[str]) -> Iterator[tuple[Fit | Derived, set[str]]]:
    """Yields the entries ``names`` and those behind them, each with, and after, what it needs."""
    listed: tuple[Fit | Derived, ...] = (*study.fits, *study.derived)
    entries = {entry.name: entry for entry in listed}
    needs = {name: entry.needs for name, entry in entries.items()}
    reached = {*names}
    while more := {need for name in reached for need in needs[name]} - reached:
        reached |= more
    for name in TopologicalSorter({n: needs[n] for n in needs if n in reached}).static_order():
        yield entries[name], needs[name]
