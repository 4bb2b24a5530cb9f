"""Checks a study's entries before the first job starts: laws, columns, expressions, code.

It is light enough for the Snakefile: laws import NumPy alone, and none of a study's own code runs.
What that code reads and which columns it makes is checked when it runs (``analysis.inputs``).
"""

from collections.abc import Iterable

import numpy as np

from moelaws import laws
from moelaws.laws.mapping import check_comparable, sources, unit_factors
from moelaws.laws.protocol import overridden, own_overrides
from moelaws.laws.vocabulary import refuse_unit
from moelaws.records.code import definition
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import ROWS, Contest, Fit
from moelaws.spec.measure import Parameter, refuse_lack
from moelaws.spec.readers import Figure
from moelaws.spec.rows import parse_rows, select
from moelaws.spec.study import DATASET, Simulation, Study, sweep_of
from moelaws.tables.at_hand import absent, imported_files
from moelaws.tables.column import Column
from moelaws.tables.mapping import joined_columns, read_mapping
from moelaws.tables.schema import COLUMNS, CORPUS

NUMBERS = ("int", "float")
OWN = {column.name: column.unit for column in COLUMNS if column.type in NUMBERS}


def check_study(study: Study) -> None:
    """Refuses what would otherwise fail only after every model is trained."""
    with located(study.file, "keep_weights"):
        _check_sweep(study, study.keep_weights.sweep)
    for entry in study.readers:
        for code in entry.references:
            with located(study.file, f"{entry.name}: code"):
                function = definition(study.home, code).args
                _, *parameters = (a.arg for a in (*function.args, *function.kwonlyargs))
                if unknown := sorted(set(entry.arguments) - set(parameters)):
                    raise UserError(
                        f"with: {code} takes no {', '.join(unknown)}; it takes "
                        f"{', '.join(parameters) or 'nothing'}"
                    )
        with located(study.file, f"{entry.name}: with"):
            _check_sweep(study, sweep_of(entry))
    for figure in study.figures:
        with located(study.file, f"{figure.name}: panels"):
            _check_series(study, figure)
    for claim in study.claims:
        if not claim.measure:
            continue
        with located(study.file, claim.name):
            claim.measure.refuse_words()
            if not claim.measure.source:
                claim.measure.refuse_unknown(_columns(study)[1])
            if isinstance(claim.measure, Parameter):
                for fit in map(study.fit, claim.measure.fits):
                    names = laws.fittable(fit.law).names
                    refuse_lack(claim.measure.parameter, names, f"{fit.law} has no")
    if study.simulation is not None:
        with located(study.file, "simulation"):
            _check_simulation(study, study.simulation)
    for fit in study.fits:
        with located(study.file, f"fit {fit.name}"):
            _check_sweep(study, fit.sweep)
            _check_fit(study, fit)
    for contest in study.contests:
        check_contest(study, contest)
        with located(study.file, f"contest {contest.name}"):
            short = contest.shortened()
        check_contest(study, short)


def _check_series(study: Study, figure: Figure) -> None:
    """Refuses series of runs whose columns these have not; other tables are not made yet."""
    for series in figure.series:
        if series.code or series.table in figure.derived or series.predicted:
            continue
        units, known = _columns(study)
        _check_rows([series.rows], known, units)
        _refuse_others((series.x, series.y, series.over, series.by, *series.ends), known)


def check_contest(study: Study, contest: Contest) -> None:
    """Refuses what no law could be judged by; a law that lacks columns is only named later."""
    with located(study.file, f"contest {contest.name}"):
        _check_sweep(study, contest.sweep)
        candidates = [laws.fittable(ref) for ref in contest.laws]
        if unknown := sorted(set(contest.mappings) - set(contest.laws)):
            raise UserError(f"mappings: {', '.join(unknown)} is not among its laws")
        pairs = [p for own in (contest.mapping, *contest.mappings.values()) for p in own.items()]
        check_comparable(candidates, dict(pairs))
        for law in candidates:
            overridden(law, own_overrides(law, contest.protocol), contest.name)
        units, known = _columns(study)
        columns = [*(column for _, column in pairs), *(split.column for split in contest.splits)]
        _refuse_others(columns, units, "column of numbers")
        for split in contest.splits:
            _check_rows((contest.rows, split.rows, split.holdout), known, units)
        _check_columns(contest, known)


def _check_simulation(study: Study, simulation: Simulation) -> None:
    law = laws.fittable(simulation.law)
    if law.published is None or law.response.name != "L":
        what = "has no published coefficients" if law.published is None else "gives no loss"
        raise UserError(f"law: {law.ref} {what}")
    sources(law, {"N": "N_total", **simulation.mapping}, tuple(OWN))  # as in tables.simulate
    parse_rows(simulation.rows)
    if unknown := sorted(set(simulation.sweeps) - study.sweep_names):
        raise UserError(f"sweeps: no grid has a sweep {', '.join(unknown)}")


def _check_sweep(study: Study, sweep: str) -> None:
    """Refuses a sweep that no tier, or no imported run, has.

    ``at_tier`` leaves out what a single tier lacks. A table that is not here may have any sweep.
    """
    if not sweep or absent(study):
        return
    where, names = "grid", study.sweep_names
    if tables := imported_files(study):
        from moelaws.files.parquet import read_parquet  # it loads pyarrow, in vain for most studies

        columns = [read_parquet(table).to_pydict() for table in tables]
        cells = {cell for column in columns for cell in column.get("sweep", ())} - {None}
        where, names = "imported run", {name for cell in cells for name in cell.split(",")}
    if sweep not in names:
        known = ", ".join(sorted(names)) or "none with a name"
        raise UserError(f"sweep: no {where} has a sweep {sweep!r}; there are {known}")


def _columns(study: Study) -> tuple[dict[str, str], list[str]]:
    """Returns the columns of numbers of the study's table, with units, and the names of all."""
    columns: Iterable[Column] = (*COLUMNS, CORPUS)
    if study.imported:  # its table has the columns that are not mapped, too, but they are empty
        mappings = [read_mapping(path) for path in imported_files(study).values()]
        names = {"run_id", "study", "source"} | ({DATASET} if study.imported.names else set())
        names = names.union(*(mapping.words for mapping in mappings))
        columns = [column for column in joined_columns(mappings) if column.name in names]
    return {c.name: c.unit for c in columns if c.type in NUMBERS}, [c.name for c in columns]


def _check_fit(study: Study, fit: Fit) -> None:
    for tier in fit.tiers:
        _check_fit(study, fit.at_tier(tier))
    law = laws.fittable(fit.law)
    overridden(law, fit.protocol, fit.name)
    for name in fit.profile:
        if name not in law.names:
            raise UserError(
                f"profile: {name!r} is no parameter of {law.ref}; it has {', '.join(law.names)}"
            )
    every = (fit.rows, fit.holdout)
    for text in every:
        parse_rows(text)
    if fit.best_per and law.response.name != "L":
        raise UserError(f"best_per: {law.ref} gives no loss, by which trials are compared")
    if fit.table:  # its columns are unknown until it is made
        if any(other.name == fit.table and not other.split_by for other in study.fits):
            raise UserError(f"table: the fit {fit.table!r} is not split: it gives one row")
        return
    units, known = _columns(study)
    _refuse_others((*fit.mapping.values(), fit.weights), units, "column of numbers")
    variables = sources(law, fit.mapping, tuple(units))
    unit_factors(variables, fit.units, units)
    if fit.weights:
        word = fit.units.get(law.response.name)
        refuse_unit(law.response, fit.weights, units[fit.weights], word)
    _check_rows(every, known, (*units, *variables.variables))
    _check_columns(fit, known)


def _refuse_others(names: Iterable[str], known: Iterable[str], kind: str = "column") -> None:
    """Refuses names that are not known; an empty one names nothing."""
    for name in names:
        if name and name not in known:
            raise UserError(f"{name!r} is no {kind}; there are {', '.join(known)}")


def _check_rows(expressions: Iterable[str], known: list[str], numbers: Iterable[str]) -> None:
    columns = {name: np.empty(0, object) for name in known} | {n: np.empty(0) for n in numbers}
    for text in expressions:
        select(columns, text)


def _check_columns(entry: Fit | Contest, known: list[str]) -> None:
    resampled = "" if entry.resample_by == ROWS else entry.resample_by
    _refuse_others((getattr(entry, "split_by", ""), resampled, *entry.best_per), known)
