"""``moelaws derive``: a table made from a study's table and fits, such as its isoFLOP optima."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.cli.study_files import (
    files,
    fit_option,
    report_warnings,
    simulated_option,
    table_option,
)
from moelaws.spec.project import Project


@click.command(name="derive")
@click.argument("name")
@click.option("--study", "study_name", required=True, help="The study that declares the table.")
@project_options
@table_option
@fit_option
@click.option("--out", type=click.Path(path_type=Path), help="The Parquet file to write.")
@simulated_option
@json_option
def command(
    name: str,
    study_name: str,
    project: Project,
    table: Path | None,
    fits: tuple[str, ...],
    out: Path | None,
    simulated: bool,
    as_json: bool,
) -> None:
    """Make the study's derived table NAME, with what limits it as warnings."""
    from moelaws.analysis.derive import derive, named
    from moelaws.analysis.inputs import Inputs
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study

    study, tier, results = load_study(study_name), project.tier, Results()
    entry = named(study.derived, "name", name, f"study {study_name!r} has no derived table")
    inputs = Inputs.read(
        table or results.table(tier, study_name, simulated),
        files("--fit", fits, entry.fits, lambda n: results.fit(tier, study_name, n, simulated)),
    )
    out = out or results.derived(tier, study_name, name, simulated)
    warnings = derive(study, name, inputs, out)
    report_warnings(warnings)
    if as_json:
        print_json({"derived": name, "file": str(out), "warnings": warnings})
    else:
        click.echo(str(out))
