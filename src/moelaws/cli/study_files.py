"""The files behind a study's entries: those of the command line, or else those in results/."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moelaws.cli.common import FILE, gathered, option, pairs, table_option
from moelaws.cli.project import tier_folder
from moelaws.records.code import digest
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies, load_project, load_study, study_names
from moelaws.spec.study import KINDS, Reader, Study
from moelaws.workflow.code import of_readers

if TYPE_CHECKING:
    from moelaws.analysis.inputs import Inputs


@dataclass(frozen=True)
class StudyFiles:
    """The files that a command line names; the others are where the workflow puts them."""

    table: Path | None = None
    fits: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    speed: Path | None = None

    def inputs(
        self, study: Study, kind: str, entries: Sequence[Reader], project: Project
    ) -> "Inputs":
        """Returns what the study's ``entries`` of one kind (figures, claims, ...) read together."""
        from moelaws.analysis.inputs import Inputs, read_runs

        folder, key = tier_folder(project), study.study
        fits = {name: folder.fit(key, name) for entry in entries for name in entry.fits}
        derived = {name: folder.derived(key, name) for entry in entries for name in entry.derived}
        fits |= _given("--fit", self.fits, fits)
        derived |= _given("--derived", self.derived, derived)
        table = self.table or (folder.table(key) if study.has_runs else None)
        inputs = Inputs(
            frame=read_runs(table) if table else None,
            derived_tables=derived,
            data={name: study.shipped(name) for e in entries for name in getattr(e, "data", ())},
            table_file=table,
            speed_file=self.speed or folder.speed(key),
            code=digest(of_readers(study, kind, entries)),
        )
        if not fits:
            return inputs
        from moelaws.analysis.fitted import FittedInputs

        return FittedInputs(**vars(inputs), fits=fits)


# Adds ``--table``, ``--fit``, ``--derived`` and ``--speed``; the command receives ``files``.
file_options = gathered(
    "files",
    StudyFiles,
    table_option,
    option(
        "--fit fits", "A fit's JSON; results/... by default.", multiple=True, metavar="NAME=FILE"
    ),
    option(
        "--derived", "A derived table; results/... by default.", multiple=True, metavar="NAME=FILE"
    ),
    option(
        "--speed",
        "The measured speeds of the study's configurations; results/... by default.",
        FILE,
    ),
)


def _given(option: str, texts: tuple[str, ...], declared: Mapping[str, Path]) -> dict[str, Path]:
    files = pairs(option, texts, "NAME=FILE")
    if unknown := [name for name in files if name not in declared]:
        raise UserError(
            f"{option} '{unknown[0]}={files[unknown[0]]}' names what the study's entry does not "
            f"declare; it declares {', '.join(sorted(declared)) or 'none'}"
        )
    return {name: Path(file) for name, file in files.items()}


def study_with(kind: str, name: str, given: str | None = None) -> Study:
    """Returns the study ``given``, or the one that has an entry ``name`` of a kind like figures.

    If several have one, it is the one among the studies that the configuration chooses.
    """
    if given:
        return load_study(given)
    studies = [load_study(key) for key in study_names()]
    names = {s.study: [entry.name for entry in getattr(s, kind)] for s in studies}
    owners = [study for study in studies if name in names[study.study]]
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
    known = ", ".join(name for each in names.values() for name in each) or "none"
    raise UserError(f"no study has a {noun} {name!r}; there are: {known}")
