"""``moelaws judge`` decides claims by rule, ``power`` tries the rules, ``claims`` sets a page."""

from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, table_text
from moelaws.cli.common import INPUT, REPEATS, Paths, option, out_option, table_option
from moelaws.cli.fit import threads_option
from moelaws.cli.project import project_options, source_options, tier_folder
from moelaws.cli.study_files import inputs_of
from moelaws.files.atomic import write_json, write_page
from moelaws.files.seal import made_of
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies, load_study
from moelaws.tables.at_hand import as_made
from moelaws.workflow.code import of_power


@click.command(name="judge", cls=JsonCommand)
@click.argument("study")
@source_options
@out_option("A JSON file for the verdicts; without it they are only printed.")
def judge(study: str, project: Project, out: Path | None, as_json: bool) -> None:
    """Judge the claims of STUDY: verdicts by rule, with the numbers behind them.

    `moelaws claims` sets the verdicts of all studies as one page.
    """
    from moelaws.claims.judge import judge as decide

    judged = as_made(load_study(study), project)
    verdicts = decide(judged, inputs_of(judged, "claims", judged.claims, project))
    if out:
        write_json(out, verdicts)
    rows = [(c["name"], c["verdict"], c["figure"], c["measured"]) for c in verdicts["claims"]]
    columns = ("claim", "verdict", "figure", "these runs")
    print_answer(as_json, verdicts, table_text(columns, rows, str(out or "")))


@click.command(name="claims", cls=JsonCommand)
@click.argument("verdicts", nargs=-1, type=INPUT)
@option(
    "--power powers",
    "Verdicts on simulated tables (moelaws power), to print beside these.",
    INPUT,
    multiple=True,
)
@source_options
@out_option("The Markdown file to write; without it the page is printed.")
def command(
    verdicts: Paths, powers: Paths, project: Project, out: Path | None, as_json: bool
) -> None:
    """Write what the studies claim beside what these runs show, as one page.

    VERDICTS are files that `moelaws judge` wrote; by default those of the chosen studies, with what
    `moelaws power` wrote for them.
    """
    from moelaws.claims.base import JudgedStudy, Tried
    from moelaws.claims.page import page, read_judged

    folder = tier_folder(project)
    if not verdicts:
        names = [s.study for s in chosen_studies(project) if as_made(s, project).claims]
        if not names:
            raise UserError("no chosen study has a claim; the key `claims` of its file states them")
        verdicts = tuple(folder.verdicts(name) for name in names)
        powers = powers or tuple(p for p in map(folder.power, names) if p.is_file())
    judged = [read_judged(JudgedStudy, path) for path in verdicts]
    tried = {(power := read_judged(Tried, path))["study"]: power for path in powers}
    text = page(judged, project.tier, tried)
    if out:
        write_page(out, text)
    print_answer(as_json, {"page": str(out) if out else None, "studies": judged}, out or text)


@click.command(name="power", cls=JsonCommand)
@click.argument("study")
@project_options
@table_option
@option("--tables", "How many tables to simulate for each law.", REPEATS, 10)
@threads_option
@out_option("A JSON file for the counts; without it they are only printed.")
def power(
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
