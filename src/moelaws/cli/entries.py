"""``moelaws derive``, ``figure`` and ``table``: one entry of a study, from what it declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.cli.study_files import StudyFiles, file_options, report_warnings, study_with
from moelaws.records.layout import TierFolder
from moelaws.spec.project import Project, load_study
from moelaws.spec.references import resolve


@dataclass(frozen=True)
class _Kind:
    """One kind of entry: its command, its key in a study, and the files that are written."""

    command: str
    key: str
    code: str  # of the function (study, name, inputs, out) that writes the files
    path: Callable[[TierFolder, str, str], Path]
    suffixes: tuple[str, ...]
    help: str


def _command(kind: _Kind) -> click.Command:
    @click.command(name=kind.command, help=kind.help)
    @click.argument("name")
    @click.option(
        "--study",
        "study_name",
        metavar="STUDY",
        help="The study, or the YAML file of your own; needed where several have that name.",
    )
    @project_options
    @file_options
    @click.option(
        "--out",
        type=click.Path(path_type=Path),
        help=f"The {kind.suffixes[0]} file to write; results/... by default.",
    )
    @json_option
    def command(
        name: str,
        study_name: str | None,
        project: Project,
        files: StudyFiles,
        out: Path | None,
        as_json: bool,
    ) -> None:
        study = load_study(study_name) if study_name else study_with(kind.key, name)
        inputs = files.inputs(study, kind.key, [study.entry(kind.key, name)], project)
        out = out or kind.path(files.folder(project), study.study, name)
        warnings: list[str] = resolve("moelaws", kind.code)(study, name, inputs, out)
        report_warnings(warnings)
        written = [str(out.with_suffix(suffix)) for suffix in kind.suffixes]
        if as_json:
            about = {kind.command: name, "study": study.study}
            print_json({**about, "files": written, "warnings": warnings})
        else:
            click.echo("\n".join(written))

    return command


derive = _command(
    _Kind(
        command="derive",
        key="derived",
        code="analysis.derive:derive",
        path=TierFolder.derived,
        suffixes=(".parquet",),
        help="Make a study's derived table NAME, with what limits it as warnings.",
    )
)
figure = _command(
    _Kind(
        command="figure",
        key="figures",
        code="figures.draw:draw",
        path=TierFolder.figure,
        suffixes=(".pdf", ".png", ".csv", ".json"),
        help="Draw the figure NAME, as in its paper (F1a): PDF, PNG and the plotted numbers as "
        "CSV.",
    )
)
table = _command(
    _Kind(
        command="table",
        key="tables",
        code="figures.draw:tabulate",
        path=TierFolder.paper_table,
        suffixes=(".csv", ".md", ".tex", ".json"),
        help="Set the table NAME, as in its paper (T3): CSV in full precision, Markdown and LaTeX.",
    )
)
