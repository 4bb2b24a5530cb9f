"""``moelaws claims``: the verdicts of the chosen studies as one page."""

from __future__ import annotations

import os
from pathlib import Path

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.spec.project import Project


@click.command(name="claims")
@project_options
@click.option("--simulated", is_flag=True, help="Of results/TIER/simulated.")
@click.option("--out", type=click.Path(path_type=Path), help="The Markdown file to write.")
@json_option
def command(project: Project, simulated: bool, out: Path | None, as_json: bool) -> None:
    """What the papers claim beside what these runs show: results/TIER/claims.md.

    Sets the verdicts that `moelaws judge` wrote for the chosen studies.
    """
    from moelaws.claims.judge import page
    from moelaws.records.files import read_json, write_text
    from moelaws.records.layout import Results
    from moelaws.spec.project import chosen_studies

    simulated = simulated or project.source == "simulated"
    results, tier = Results(), project.tier
    out = out or results.claims(tier, simulated)
    names = [study.study for study in chosen_studies(project) if study.claims]
    verdicts = [read_json(results.verdicts(tier, name, simulated)) for name in names]
    folders = {
        name: Path(os.path.relpath(results.figure(tier, name, "F", simulated).parent, out.parent))
        for name in names
    }
    write_text(out, page(verdicts, tier, folders))
    if as_json:
        print_json({"page": str(out), "studies": verdicts})
    else:
        click.echo(str(out))
