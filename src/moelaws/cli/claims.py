"""``moelaws claims`` sets what the studies claim beside what these runs show, as one page."""

from pathlib import Path

import click

from moelaws.cli.answers import Answer, JsonCommand
from moelaws.cli.common import INPUT, Paths, option, out_option
from moelaws.cli.project import project_options, tier_folder
from moelaws.files.atomic import write_page
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies
from moelaws.tables.at_hand import as_made


@click.command(name="claims", cls=JsonCommand)
@click.argument("verdicts", nargs=-1, type=INPUT)
@option(
    "--power powers",
    "Verdicts on simulated tables (moelaws make power), to print beside these.",
    INPUT,
    multiple=True,
)
@project_options
@out_option("The Markdown file to write; without it the page is printed.")
def command(verdicts: Paths, powers: Paths, project: Project, out: Path | None) -> Answer:
    """Write what the studies claim beside what these runs show, as one page.

    VERDICTS are files that `moelaws make claims` wrote; by default those of the chosen studies,
    with what `moelaws make power` wrote for them.
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
    return {"page": str(out) if out else None, "studies": judged}, out or text
