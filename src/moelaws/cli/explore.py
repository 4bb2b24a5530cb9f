"""``moelaws explore``: one page with all that is known of a tier, to open in a browser."""

from pathlib import Path

import click

from moelaws.cli.answers import JsonCommand, print_json, warn
from moelaws.cli.common import out_option
from moelaws.cli.project import project_options, snakemake_call
from moelaws.files.atomic import write_page
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project
from moelaws.spec.words import counted


@click.command(name="explore", cls=JsonCommand)
@project_options
@out_option("The page to write (.html); explore.html in this folder by default.", ".html")
def command(project: Project, out: Path | None, as_json: bool) -> None:
    """Write a page with all runs, curves, laws, figures and verdicts that were made of a tier.

    The page is one file that opens in a browser without a network. It shows what is there, also
    while runs are under way: call the command again to see more.
    """
    from moelaws.explore.material import Material
    from moelaws.explore.page import gather, render
    from moelaws.workflow.jobs import Jobs

    jobs = Jobs.of(project).with_others()
    studies, declared = tuple(jobs.shown_studies.values()), frozenset(jobs.explored())
    out = out or Path(jobs.folder.explore.name)
    material = Material(project, studies, jobs.sweeps, declared, jobs.simulated, jobs.results, out)
    data = gather(material)
    if not (data["runs"]["count"] or data["studies"]):
        raise UserError(
            f"{material.folder.root} has no table, figure or verdict, and {material.results.runs} "
            f"no run of the tier {project.tier}. Run `{snakemake_call(project)}` first, or name "
            "another tier with --tier"
        )
    write_page(out, render(data))
    size = out.stat().st_size / 1e6
    if as_json:
        numbers = {name: len(data[name]) for name in ("laws", "isoflop", "studies")}
        about = {"page": str(out), "megabytes": size, "runs": data["runs"]["count"]}
        print_json({**about, **numbers, "notes": data["notes"]})
        return
    warn(*data["notes"], limit=len(data["notes"]))
    click.echo(
        f"{out}: {counted(data['runs']['count'], 'run')}, {size:.1f} MB; open it in a browser"
    )
