"""``moelaws derive``, ``figure`` and ``table`` make one entry of a study, as it declares it.

``moelaws check`` imports the code of all entries.
"""

from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, warn
from moelaws.cli.common import out_option, study_option
from moelaws.cli.project import source_options
from moelaws.cli.study_files import StudyFiles, file_options, study_with
from moelaws.spec.errors import located
from moelaws.spec.project import Project, load_study
from moelaws.spec.references import resolve


def _command(
    verb: str,
    key: str,
    code: str,
    suffixes: tuple[str, ...],
    purpose: str,
) -> click.Command:
    """Returns the command ``verb`` of the entries below a study's ``key``.

    The function at ``code`` takes study, name, inputs and a path, and writes a file a suffix.
    """

    @click.command(name=verb, help=purpose, cls=JsonCommand)
    @click.argument("name")
    @study_option
    @source_options
    @file_options
    @out_option(f"The file to write; NAME{suffixes[0]} in this folder by default.")
    def command(
        name: str,
        study_name: str | None,
        project: Project,
        files: StudyFiles,
        out: Path | None,
        as_json: bool,
    ) -> None:
        study = study_with(key, name, study_name)
        inputs = files.inputs(study, key, [study.entry(key, name)], project)
        out = out or Path(name + suffixes[0])
        warnings: list[str] = resolve("moelaws", code)(study, name, inputs, out)
        warn(*warnings)
        written = [str(out.with_suffix(suffix)) for suffix in suffixes]
        about = {verb: name, "study": study.study, "files": written, "warnings": warnings}
        print_answer(as_json, about, "\n".join(written))

    return command


derive = _command(
    "derive",
    "derived",
    "analysis.derive:derive",
    (".parquet",),
    "Make a study's derived table NAME, with what limits it as warnings.",
)
figure = _command(
    "figure",
    "figures",
    "figures.draw:draw",
    (".pdf", ".png", ".csv", ".json"),
    "Draw the figure NAME, as in its paper (F1a): PDF, PNG and the plotted numbers as CSV.",
)
table = _command(
    "table",
    "tables",
    "figures.draw:tabulate",
    (".csv", ".md", ".tex", ".json"),
    "Write the paper table NAME (such as T3): CSV in full precision, Markdown and LaTeX.",
)


@click.command(name="check")
@click.argument("study")
def check(study: str) -> None:
    """Import the code of STUDY's entries, so that its mistakes show before anything is trained."""
    known = load_study(study)
    for entry in known.readers:
        with located(known.file, f"{entry.name}: code"):
            resolve(known.home, entry.code)
