"""``moelaws judge``: a study's claims decided by rule from its tables and fits."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.cli.study_files import entry_inputs, file_options
from moelaws.spec.project import Project


@click.command(name="judge")
@click.argument("study_name", metavar="STUDY")
@project_options
@file_options
@click.option("--out", type=click.Path(path_type=Path), help="The JSON file to write.")
@json_option
def command(
    study_name: str,
    project: Project,
    table: Path | None,
    fits: tuple[str, ...],
    derived: tuple[str, ...],
    out: Path | None,
    simulated: bool,
    as_json: bool,
) -> None:
    """Judge the claims of STUDY: verdicts by rule, with the numbers behind them.

    `moelaws claims` sets the verdicts of all studies as one page.
    """
    from moelaws.claims.judge import judge
    from moelaws.records.files import write_json
    from moelaws.records.layout import Results
    from moelaws.spec.project import load_study

    study = load_study(study_name)
    if simulated := simulated or project.source == "simulated":
        study = study.of_simulated()
    inputs = entry_inputs(study, study.claims, project.tier, simulated, table, fits, derived)
    verdicts = judge(study, inputs)
    out = out or Results().verdicts(project.tier, study_name, simulated)
    write_json(out, verdicts)
    if as_json:
        print_json(verdicts)
        return
    rows = [(c["id"], c["verdict"], c["figure"], c["measured"]) for c in verdicts["claims"]]
    print_table(("claim", "verdict", "figure", "these runs"), rows, str(out))
