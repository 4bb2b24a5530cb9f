"""``moelaws derive``, ``figure`` and ``table`` make one entry of a study, as it declares it.

``moelaws draw`` makes all figures and paper tables, ``moelaws check`` imports the code of all.
"""

import shutil
import traceback
from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, warn
from moelaws.cli.common import FOLDER, option, out_option, study_option, table_option
from moelaws.cli.project import source_options, tier_folder
from moelaws.cli.study_files import as_made, inputs_of, study_with
from moelaws.spec.errors import UserError, located
from moelaws.spec.project import Project, load_study
from moelaws.spec.references import resolve
from moelaws.spec.study import Figure, PaperTable, Study


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
    "figures.draw:tabulate",
    (".csv", ".md", ".tex", ".json"),
    "Write the paper table NAME (such as T3): CSV in full precision, Markdown and LaTeX.",
)


@click.command(name="draw")
@click.argument("study")
@source_options
@option("--out", "The folder to draw into.", FOLDER, required=True)
def draw(study: str, project: Project, out: Path) -> None:
    """Draw all figures and paper tables of STUDY that are out of date, and copy the others.

    Each picture has a log beside it. One that cannot be drawn has only the log, which says why.
    """
    made = as_made(study, project)
    out.mkdir(parents=True, exist_ok=True)
    for picture in made.pictures:
        try:
            said = _draw(made, picture, project, out)
        except UserError as error:
            said = f"moelaws: {error}"
        except Exception:  # of the study's own code: the other pictures are drawn all the same
            said = traceback.format_exc()
        (out / f"{picture.name}.log").write_text(f"{said}\n", encoding="utf-8")
        click.echo(f"{picture.name}: {said}")


def _draw(study: Study, picture: Figure | PaperTable, project: Project, out: Path) -> str:
    """Draws or copies a picture to the folder ``out``; returns what its log says."""
    from moelaws.figures import draw as drawing

    is_figure = isinstance(picture, Figure)
    make, kind = (drawing.draw, "figures") if is_figure else (drawing.tabulate, "tables")
    suffixes = drawing.FIGURE if is_figure else drawing.PAPER_TABLE
    inputs = inputs_of(study, kind, [picture], project)
    path = out / f"{picture.name}{suffixes[0]}"
    old = tier_folder(project).figures(study.study) / path.name
    if drawing.is_current(study, picture, inputs, old):
        for suffix in (*suffixes, ".json"):
            shutil.copy(old.with_suffix(suffix), out)
        return "as it was drawn before"
    return "\n".join(["drawn", *(f"warning: {w}" for w in make(study, picture.name, inputs, path))])


@click.command(name="check")
@click.argument("study")
def check(study: str) -> None:
    """Import the code of STUDY's entries, so that its mistakes show before anything is trained."""
    known = load_study(study)
    for entry in known.readers:
        with located(known.file, f"{entry.name}: code"):
            resolve(known.home, entry.code)
