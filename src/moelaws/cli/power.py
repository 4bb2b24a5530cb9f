"""``moelaws power``: how often rules support claims whose effects are there, and are not."""

from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, table_text
from moelaws.cli.common import REPEATS, option, out_option, table_option
from moelaws.cli.fit import threads_option
from moelaws.cli.project import project_options, tier_folder
from moelaws.files.atomic import write_json
from moelaws.files.seal import made_of
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, load_study
from moelaws.workflow.code import of_power


@click.command(name="power", cls=JsonCommand)
@click.argument("study")
@project_options
@table_option
@option("--tables", "How many tables to simulate for each law.", REPEATS, 10)
@threads_option
@out_option("A JSON file for the counts; without it they are only printed.")
def command(
    study: str, project: Project, table: Path | None, tables: int, out: Path | None, as_json: bool
) -> None:
    """Try the rules of STUDY's claims on simulated tables of its runs.

    In some tables the losses are those of the published law, so the effects are there. In the
    others they are those of a law without the effect, fitted to the runs. `moelaws claims` prints
    both counts beside each verdict.
    """
    from moelaws.analysis.inputs import read_runs
    from moelaws.claims.base import Verdict
    from moelaws.claims.power import tried

    chosen = load_study(study).at_tier(project.tier)
    path = table or tier_folder(project).table(chosen.study)
    frame = read_runs(path)
    origin = made_of([path], digest(of_power(chosen)))
    with reporting(lines=False) as show:
        counts = tried(
            chosen, project.tier, frame, tables, origin, lambda i, n: show("tables", i, n)
        )
    if not counts["claims"]:
        raise UserError(f"{chosen.study}: no law gives what the rules of its claims read")
    if out:
        write_json(out, counts)
    rows = [
        (name, law, *own.values())
        for name, laws in counts["claims"].items()
        for law, own in laws.items()
    ]
    columns = ("claim", "losses of the law", *Verdict)
    title = f"{f'{out}: ' if out else ''}{tables} tables for each law, noise {counts['noise']:.2g}"
    print_answer(as_json, counts, table_text(columns, rows, title))
