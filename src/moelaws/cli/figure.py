"""``moelaws figure``: one figure of a study, from its table, fits and derived tables."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.cli.study_files import entry_inputs, file_options, report_warnings
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study, study_names
from moelaws.spec.study import Study


@click.command(name="figure")
@click.argument("figure")
@click.option("--study", "study_name", help="The study; needed where several have the figure.")
@project_options
@file_options
@click.option("--out", type=click.Path(path_type=Path), help="The PDF; PNG and CSV go beside it.")
@json_option
def command(
    figure: str,
    study_name: str | None,
    project: Project,
    table: Path | None,
    fits: tuple[str, ...],
    derived: tuple[str, ...],
    out: Path | None,
    simulated: bool,
    as_json: bool,
) -> None:
    """Draw FIGURE, named as in its paper (F1a): PDF, PNG and the plotted numbers as CSV."""
    from moelaws.analysis.derive import named
    from moelaws.figures.draw import draw
    from moelaws.records.layout import Results

    study = load_study(study_name) if study_name else _only_study_with(figure)
    name, tier = study.study, project.tier
    entry = named(study.figures, "id", figure, f"study {name!r} has no figure")
    simulated = simulated or project.source == "simulated"
    inputs = entry_inputs(study, [entry], tier, simulated, table, fits, derived)
    out = out or Results().figure(tier, name, figure, simulated)
    warnings = draw(study, figure, inputs, out)
    report_warnings(warnings)
    written = [str(out.with_suffix(suffix)) for suffix in (".pdf", ".png", ".csv")]
    if as_json:
        print_json({"figure": figure, "study": name, "files": written, "warnings": warnings})
    else:
        click.echo("\n".join(written))


def _only_study_with(figure: str) -> Study:
    studies = [load_study(name) for name in study_names()]
    having = [study for study in studies if any(f.id == figure for f in study.figures)]
    if len(having) == 1:
        return having[0]
    if having:
        names = ", ".join(study.study for study in having)
        raise UserError(f"several studies have a figure {figure!r}: {names}; choose with --study")
    known = ", ".join(f.id for study in studies for f in study.figures) or "none"
    raise UserError(f"no study has a figure {figure!r}; there are: {known}")
