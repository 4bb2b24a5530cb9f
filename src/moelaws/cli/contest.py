"""Contests of laws, which ``moelaws make`` judges; ``moelaws contests`` sets them as one page."""

from pathlib import Path

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import INPUT, Paths, out_option
from moelaws.cli.fit import read
from moelaws.cli.project import project_options, tier_folder
from moelaws.files.atomic import write_page
from moelaws.files.seal import made_of
from moelaws.fitting.report import ContestScores
from moelaws.records.code import digest
from moelaws.records.progress import reporting
from moelaws.spec.errors import located
from moelaws.spec.fit import Contest
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.study import Study
from moelaws.tables.at_hand import as_made
from moelaws.workflow.code import of_contest


def judged(study: Study, entry: Contest, table: Path) -> ContestScores:
    """Returns the errors of a contest's laws on the rows that its splits keep from them."""
    from moelaws.fitting.contest import contest
    from moelaws.fitting.fit import source_of
    from moelaws.workflow.check import check_contest

    check_contest(study, entry)
    frame, declared = read(table)
    with reporting() as progress, located(table):
        splits = contest(entry, frame, units=declared, progress=progress)
    return ContestScores(
        study=study.study,
        title=study.title,
        contest=entry.name,
        source=source_of(frame),
        runs=study.imported.called if study.imported else "",
        entry=entry.model_dump(mode="json"),
        seed=0,
        splits=splits,
        made_of=made_of([table], digest(of_contest(entry))),
    )


@click.command("contests", cls=JsonCommand)
@click.argument("files", nargs=-1, type=INPUT)
@project_options
@out_option("The Markdown file to write; without it the page is printed.", ".md")
def contests(files: Paths, project: Project, out: Path | None) -> Answer:
    """Write which law to use for what, as one page.

    FILES are what `moelaws make contests` wrote; by default those of the chosen studies.
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
    return {"page": str(out) if out else None, "contests": judged}, out or text
