"""``moelaws derive``, ``figure`` and ``table`` make one entry of a study, as it declares it.

``moelaws draw`` makes all figures and paper tables, ``moelaws check`` imports the code of all.
"""

import shutil
from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, warn
from moelaws.cli.common import FOLDER, option, out_option, study_option, table_option
from moelaws.cli.project import source_options, tier_folder
from moelaws.cli.study_files import inputs_of, study_with
from moelaws.files.atomic import write_text
from moelaws.spec.errors import located
from moelaws.spec.project import Project, load_study
from moelaws.spec.references import resolve
from moelaws.tables.at_hand import as_made


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
    @table_option
    @out_option(f"The file to write; NAME{suffixes[0]} in this folder by default.")
    def command(
        name: str,
        study_name: str | None,
        project: Project,
        table: Path | None,
        out: Path | None,
        as_json: bool,
    ) -> None:
        study = study_with(key, name, study_name)
        inputs = inputs_of(study, key, [study.entry(key, name)], project, table)
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
    "figures.draw:draw",
    (".csv", ".md", ".tex", ".json"),
    "Write the paper table NAME (such as T3): CSV in full precision, Markdown and LaTeX.",
)


@click.command(name="draw")
@click.argument("study")
@source_options
@option("--out", "The folder to draw into.", FOLDER, required=True)
def draw(study: str, project: Project, out: Path) -> None:
    """Draw all figures and paper tables of STUDY that are out of date, and copy the others.

    Each has a log beside it. One that cannot be drawn has no record there, and hides no other.
    """
    from moelaws.figures import draw as drawing

    known = as_made(load_study(study), project)
    out.mkdir(parents=True, exist_ok=True)
    for picture in known.pictures:
        old = tier_folder(project).figures(known.study) / f"{picture.name}.json"
        new, said = out / old.name, "as it was drawn before"
        try:
            inputs = inputs_of(known, "pictures", [picture], project)
            if drawing.is_current(known, picture, inputs, old):
                for path in (old, *drawing.files_at(old, picture)):
                    shutil.copy(path, out)
            else:
                said = "\n".join(["drawn", *drawing.draw(known, picture.name, inputs, new)])
        except Exception as error:  # also of a user's own code
            said = f"cannot be drawn: {error!r}"
        write_text(new.with_suffix(".log"), f"{said}\n")
        click.echo(f"{picture.name}: {said}")


@click.command(name="check")
@click.argument("study")
def check(study: str) -> None:
    """Import the code of STUDY's entries, so that its mistakes show before anything is trained."""
    from moelaws.analysis.derive import derived_table
    from moelaws.workflow.check import check_study

    known = load_study(study)
    for entry in known.readers:
        with located(known.file, f"{entry.name}: code"):
            resolve(known.home, entry.code)
    for claim in known.claims:
        if claim.measure and claim.measure.source:
            made = derived_table(known, known.derived_table(claim.measure.source))
            with located(known.file, claim.name):
                claim.measure.refuse_unknown((*made.names, "source"))
    check_study(known)
