"""``moelaws claims``: the verdicts of several studies as one page."""

from __future__ import annotations

from pathlib import Path

import click

from moelaws.cli.output import json_option, out_option, print_json
from moelaws.cli.project import project_options, simulated_option
from moelaws.spec.project import Project


@click.command(name="claims")
@click.argument("verdicts", nargs=-1, type=click.Path(path_type=Path))
@project_options
@simulated_option
@out_option("The Markdown file to write.")
@json_option
def command(
    verdicts: tuple[Path, ...], project: Project, simulated: bool, out: Path | None, as_json: bool
) -> None:
    """Write what the papers claim beside what these runs show to results/TIER/claims.md.

    VERDICTS are files that `moelaws judge` wrote; by default those of the chosen studies.
    """
    from moelaws.claims.page import page, read_verdicts
    from moelaws.records.files import write_text
    from moelaws.records.layout import Results
    from moelaws.spec.project import chosen_studies

    folder = Results().tier(project.tier, simulated or project.source == "simulated")
    out = out or folder.claims
    if not verdicts:
        names = [s.study for s in chosen_studies(project) if s.at_tier(project.tier).claims]
        verdicts = tuple(folder.verdicts(name) for name in names)
    judged = [read_verdicts(path) for path in verdicts]
    write_text(out, page(judged, project.tier))
    if as_json:
        print_json({"page": str(out), "studies": judged})
    else:
        click.echo(str(out))
