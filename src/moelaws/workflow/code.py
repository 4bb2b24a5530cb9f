"""The source files behind each job. A job runs again if the content of one of them changes."""

import os
from collections.abc import Iterable
from pathlib import Path

from moelaws.records.code import CODE, PACKAGE, Entries, closure, digest
from moelaws.spec.advice import AdviceConfig
from moelaws.spec.fit import Contest
from moelaws.spec.project import load_study
from moelaws.spec.readers import Figure, Reader
from moelaws.spec.references import module_of
from moelaws.spec.study import Study

Files = tuple[Path, ...]  # of source code

# Kind of entry -> the module whose function makes it, if that is not the one for pictures
COMMANDS = {"derived": "moelaws.analysis.derive", "claims": "moelaws.claims.judge"}
PICTURES = "moelaws.figures.draw"
SERIES, FITTED = "moelaws.figures.series", "moelaws.figures.fitted"


def of_entry(study: Study, kind: str, name: str = "", simulated: bool = False) -> Files:
    """Returns the files behind the entry ``name`` of a kind or, without a name, behind all.

    The kind is a key of the study, ``runs`` for the table of its runs, ``speed`` for the measured
    speeds of its configurations, or ``power`` for the trials of its rules on simulated tables.
    """
    if kind == "runs":
        law = study.simulation.law if simulated and study.simulation else ""
        return of_simulation(law) if law else of_table(study)
    if kind == "speed":
        return of_speed()
    if kind == "power":
        return of_power(study)
    if kind == "fits":
        return of_fit(study.fit(name).law)
    if kind == "contests":
        return of_contest(study.entry("contests", name))
    return of_readers(study, kind, [study.entry(kind, name)] if name else getattr(study, kind))


def of_readers(study: Study, kind: str, entries: Iterable[Reader]) -> Files:
    """Returns the files behind ``entries`` of one kind: figures, tables, derived or claims.

    They include the laws of the fits that ``entries`` declare, for a fit's report names its law.
    """
    entries = list(entries)
    modules = {COMMANDS.get(kind, PICTURES), *_modules(study, entries)}
    if fits := {name for entry in entries for name in entry.fits}:
        modules |= {"moelaws.analysis.fitted", *(_law(study.fit(name).law) for name in fits)}
    return closure(*modules)


def entries_of(study: Study) -> Entries:
    """Returns the entries of a study by kind, without defaults, and the digests of their code."""
    kinds = ("claims", "fits", "derived", "contests", "figures", "tables")
    return {
        kind: {
            e.name: {
                **e.model_dump(mode="json", exclude_defaults=True),
                CODE: digest(of_entry(study, kind, e.name)),
            }
            for e in getattr(study, kind)
        }
        for kind in kinds
    } | {"nulls": {e.name: e.model_dump(mode="json", exclude_defaults=True) for e in study.nulls}}


def relative(files: Iterable[Path]) -> list[str]:
    """Returns the paths of source ``files`` from the current folder."""
    return [os.path.relpath(path) for path in files]


def of_study(study: Study) -> Files:
    """Returns the files of the code of all entries of a study."""
    return closure(*_modules(study, study.readers))


def of_power(study: Study) -> Files:
    """Returns the files behind the trials of a study's rules on simulated tables."""
    readers = (*study.claims, *study.derived)
    laws = {fit.law for fit in study.fits} | {null.law for null in study.nulls if null.law}
    laws |= {study.simulation.law} if study.simulation else set()
    return closure("moelaws.claims.power", *_modules(study, readers), *map(_law, laws))


def _modules(study: Study, entries: Iterable[Reader]) -> set[str]:
    """Returns the modules that the ``entries`` name, and those that draw declared figures."""
    entries = list(entries)
    own = {module_of(study.home, name) for entry in entries for name in entry.references}
    declared = [series for e in entries if isinstance(e, Figure) for series in e.series]
    own |= {SERIES} if declared else set()
    return own | ({FITTED} if any(s.predicted or s.curve for s in declared) else set())


def of_fit(law: str) -> Files:
    """Returns the files behind a fit of ``law``: those of the engine and of the law."""
    return closure("moelaws.fitting.fit", "moelaws.tables.foreign", _law(law))


def of_contest(contest: Contest) -> Files:
    """Returns the files behind a contest: those of the engine and of its laws."""
    modules = (_law(ref) for ref in contest.laws)
    return closure("moelaws.fitting.contest", "moelaws.tables.foreign", *modules)


def of_outlook(config: AdviceConfig) -> Files:
    """Returns the files behind the outlook of a sweep: advice, its figure and its laws."""
    modules = {_law(law) for law in config.laws}
    own = ("moelaws.analysis.advice.page", "moelaws.analysis.advice.sources")
    shown = ("moelaws.figures.advice", "moelaws.figures.draw", "moelaws.tables.parquet")
    return closure(*own, *shown, "moelaws.analysis.inputs", *modules)


def of_explore(studies: Iterable[Study], advice: AdviceConfig | None) -> Files:
    """Returns the files behind the page of a tier: its code, its template and scripts.

    They include ``workflow.jobs``, which decides what the page shows and checks all laws named.
    """
    studies = list(studies)
    laws = {fit.law for study in studies for fit in study.fits} | {*(advice.laws if advice else ())}
    # Whole contests are checked, also where their short forms are judged.
    whole = [load_study(study.reference) for study in studies]
    laws |= {law for study in whole for entry in study.contests for law in entry.laws}
    own = closure("moelaws.explore.page", "moelaws.workflow.jobs", *map(_law, laws))
    return own + tuple(sorted(p for p in (PACKAGE / "explore/page").iterdir() if p.is_file()))


def of_simulation(law: str) -> Files:
    """Returns the files behind a table of the losses of ``law``."""
    return closure("moelaws.tables.simulate", "moelaws.tables.parquet", _law(law))


def of_table(study: Study) -> Files:
    """Returns the files behind the table of a study's runs, trained or imported."""
    if study.imported:
        return closure("moelaws.tables.imported")
    return closure("moelaws.tables.aggregate", "moelaws.tables.parquet")


def of_speed() -> Files:
    """Returns the files behind the measured speeds of a study's configurations."""
    chosen = ("moelaws.grids.sweep", "moelaws.tables.describe")
    return closure("moelaws.probing.speed", *chosen, "moelaws.gpus.listing")


def _law(ref: str) -> str:
    # Imported here, so that a command that evaluates no law loads none.
    from moelaws.laws import module

    return module(ref)
