"""The files behind a study's entries, which lie in results/, and the study that has an entry."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.cli.project import tier_folder
from moelaws.records.code import digest
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies, load_project, load_study, study_names
from moelaws.spec.study import KINDS, Reader, Study
from moelaws.workflow.code import of_readers

if TYPE_CHECKING:
    from moelaws.analysis.inputs import Inputs


def inputs_of(
    study: Study, kind: str, entries: Sequence[Reader], project: Project, table: Path | None = None
) -> "Inputs":
    """Returns what ``entries`` of one kind (figures, claims, ...) read together.

    The files are those that the workflow makes, but for another ``table`` of the study's runs.
    """
    from moelaws.analysis.inputs import Inputs, read_runs

    folder, key = tier_folder(project), study.study
    fits = {name: folder.fit(key, name) for entry in entries for name in entry.fits}
    table = table or (folder.table(key) if study.has_runs else None)
    inputs = Inputs(
        frame=read_runs(table) if table else None,
        derived_tables={n: folder.derived(key, n) for entry in entries for n in entry.derived},
        data={name: study.shipped(name) for e in entries for name in getattr(e, "data", ())},
        table_file=table,
        speed_file=folder.speed(key),
        code=digest(of_readers(study, kind, entries)),
    )
    if not fits:
        return inputs
    from moelaws.analysis.fitted import FittedInputs

    return FittedInputs(**vars(inputs), fits=fits)


def study_with(kind: str, name: str, given: str | None = None) -> Study:
    """Returns the study ``given``, or the one that has an entry ``name`` of a kind like figures.

    If several have one, it is the one among the studies that the configuration chooses.
    """
    if given:
        return load_study(given)
    entries = [(e.name, s) for s in map(load_study, study_names()) for e in getattr(s, kind)]
    owners = [study for own, study in entries if own == name]
    if len(owners) > 1:
        chosen = {study.study for study in chosen_studies(load_project())}
        owners = [study for study in owners if study.study in chosen] or owners
    if len(owners) == 1:
        return owners[0]
    noun = KINDS[kind]
    if owners:
        raise UserError(
            f"several studies have a {noun} {name!r}: {', '.join(s.study for s in owners)}; "
            "choose with --study"
        )
    known = ", ".join(own for own, _ in entries) or "none"
    raise UserError(f"no study has a {noun} {name!r}; there are: {known}")
