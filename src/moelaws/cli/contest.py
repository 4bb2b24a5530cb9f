"""``moelaws contest`` judges laws; ``moelaws contests`` says on a page which one to use."""

from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_answer, print_json
from moelaws.cli.common import INPUT, Paths, out_option, study_option, table_option
from moelaws.cli.compare import scores_table
from moelaws.cli.fit import read, seed_option, threads_option
from moelaws.cli.project import source_options, tier_folder
from moelaws.cli.study_files import study_with
from moelaws.files.atomic import write_json, write_page
from moelaws.files.seal import made_of
from moelaws.fitting.report import ContestScores, SplitScores
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import located
from moelaws.spec.project import Project, chosen_studies
from moelaws.tables.at_hand import as_made
from moelaws.workflow.code import of_contest


@click.command("contest", cls=JsonCommand)
@click.argument("name")
@source_options
@study_option
@table_option
@seed_option
@threads_option
@out_option("A JSON file for the scores; without it they are only printed.", ".json")
def command(
    name: str,
    project: Project,
    study_name: str | None,
    table: Path | None,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Judge the laws of the contest NAME on the rows that each of its splits keeps from them.

    At the tier demo it is in its short form, and a contest without one is unknown. With `contests:
    all` in the configuration each is whole.

    `moelaws contests` sets the contests of all studies as one page; `moelaws compare` does the same
    for any table and hold-out.
    """
    study = study_with("contests", name, study_name)
    entry = as_made(study, project).entry("contests", name)

    from moelaws.fitting.contest import contest
    from moelaws.fitting.fit import source_of
    from moelaws.workflow.check import check_contest

    check_contest(study, entry)
    table = table or tier_folder(project).table(study.study)
    frame, declared = read(table)
    with reporting() as progress, located(table):
        splits = contest(entry, frame, seed=seed, units=declared, progress=progress)
    judged = ContestScores(
        study=study.study,
        title=study.title,
        contest=name,
        source=source_of(frame),
        runs=study.imported.called if study.imported else "",
        entry=entry.model_dump(mode="json"),
        seed=seed,
        splits=splits,
        made_of=made_of([table], digest(of_contest(entry))),
    )
    if out:
        write_json(out, judged)
    if as_json:
        print_json(judged)
        return
    for split in splits:
        _print(split, entry.level)
    if out:
        click.echo(str(out))


def _print(split: SplitScores, level: float) -> None:
    if split["laws"]:
        title = f"{split['name']}: to predict {split['use']}; intervals {level:.0%}"
        click.echo(scores_table(split["laws"], title))
    for law, reason in split["refused"].items():
        click.echo(f"refused at the split {split['name']}: {law}: {reason}", err=True)


@click.command("contests", cls=JsonCommand)
@click.argument("files", nargs=-1, type=INPUT)
@source_options
@out_option("The Markdown file to write; without it the page is printed.", ".md")
def contests(files: Paths, project: Project, out: Path | None, as_json: bool) -> None:
    """Write which law to use for what, as one page.

    FILES are what `moelaws contest` wrote; by default those of the chosen studies.
    """
    from moelaws.claims.page import contests_page, read_judged

    folder = tier_folder(project)
    studies = [as_made(study, project) for study in chosen_studies(project)]
    files = files or tuple(
        folder.contest(study.study, contest.name) for study in studies for contest in study.contests
    )
    judged = [read_judged(ContestScores, path) for path in files]
    text = contests_page(judged, project.tier)
    if out:
        write_page(out, text)
    print_answer(as_json, {"page": str(out) if out else None, "contests": judged}, out or text)
