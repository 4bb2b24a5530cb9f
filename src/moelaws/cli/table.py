"""``moelaws table``: one of a study's tables, in the paper's layout."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.cli.study_files import entry_inputs, file_options, report_warnings
from moelaws.spec.project import Project


@click.command(name="table")
@click.argument("table_id", metavar="TABLE")
@click.option("--study", "study_name", required=True, help="The study that declares the table.")
@project_options
@file_options
@click.option("--out", type=click.Path(path_type=Path), help="The CSV; .md and .tex go beside it.")
@json_option
def command(
    table_id: str,
    study_name: str,
    project: Project,
    table: Path | None,
    fits: tuple[str, ...],
    derived: tuple[str, ...],
    out: Path | None,
    simulated: bool,
    as_json: bool,
) -> None:
    """Set TABLE, named as in its paper (T3): CSV in full precision, Markdown and LaTeX."""
    from moelaws.analysis.derive import named
    from moelaws.figures.draw import tabulate
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study

    study = load_study(study_name)
    entry = named(study.tables, "id", table_id, f"study {study_name!r} has no table")
    simulated = simulated or project.source == "simulated"
    inputs = entry_inputs(study, [entry], project.tier, simulated, table, fits, derived)
    out = out or Results().paper_table(project.tier, study_name, table_id, simulated)
    warnings = tabulate(study, table_id, inputs, out)
    report_warnings(warnings)
    written = [str(out.with_suffix(suffix)) for suffix in (".csv", ".md", ".tex")]
    if as_json:
        print_json({"table": table_id, "study": study_name, "files": written, "warnings": warnings})
    else:
        click.echo("\n".join(written))
