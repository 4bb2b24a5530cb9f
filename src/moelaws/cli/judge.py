"""``moelaws judge``: a study's claims decided by rule from its tables and fits."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, out_option, print_json, print_table
from moelaws.cli.project import project_options
from moelaws.cli.study_files import StudyFiles, file_options
from moelaws.spec.project import Project


@click.command(name="judge")
@click.argument("study")
@project_options
@file_options
@out_option("The JSON file to write.")
@json_option
def command(
    study: str,
    project: Project,
    files: StudyFiles,
    out: Path | None,
    as_json: bool,
) -> None:
    """Judge the claims of STUDY: verdicts by rule, with the numbers behind them.

    `moelaws claims` sets the verdicts of all studies as one page.
    """
    from moelaws.claims.judge import judge
    from moelaws.records.files import write_json
    from moelaws.spec.project import load_study

    judged = load_study(study).at_tier(project.tier)
    if files.is_simulated(project):
        judged = judged.of_simulated()
    verdicts = judge(judged, files.inputs(judged, "claims", judged.claims, project))
    out = out or files.folder(project).verdicts(judged.study)
    write_json(out, verdicts)
    if as_json:
        print_json(verdicts)
        return
    rows = [(c["name"], c["verdict"], c["figure"], c["measured"]) for c in verdicts["claims"]]
    print_table(("claim", "verdict", "figure", "these runs"), rows, str(out))
