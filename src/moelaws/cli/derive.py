"""``moelaws derive``: a table made from a study's table and fits, such as its isoFLOP optima."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.cli.study_files import entry_inputs, file_options, report_warnings
from moelaws.spec.project import Project


@click.command(name="derive")
@click.argument("name")
@click.option("--study", "study_name", required=True, help="The study that declares the table.")
@project_options
@file_options
@click.option("--out", type=click.Path(path_type=Path), help="The Parquet file to write.")
@json_option
def command(
    name: str,
    study_name: str,
    project: Project,
    table: Path | None,
    fits: tuple[str, ...],
    derived: tuple[str, ...],
    out: Path | None,
    simulated: bool,
    as_json: bool,
) -> None:
    """Make the study's derived table NAME, with what limits it as warnings."""
    from moelaws.analysis.derive import derive, named
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study

    study = load_study(study_name)
    entry = named(study.derived, "name", name, f"study {study_name!r} has no derived table")
    simulated = simulated or project.source == "simulated"
    inputs = entry_inputs(study, [entry], project.tier, simulated, table, fits, derived)
    out = out or Results().derived(project.tier, study_name, name, simulated)
    warnings = derive(study, name, inputs, out)
    report_warnings(warnings)
    if as_json:
        print_json({"derived": name, "file": str(out), "warnings": warnings})
    else:
        click.echo(str(out))
