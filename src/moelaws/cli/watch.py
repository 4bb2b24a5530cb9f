"""``moelaws watch``: a sweep while it runs, from its files alone."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from moelaws.cli.output import json_option, print_json
from moelaws.cli.project import project_options
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

if TYPE_CHECKING:
    from moelaws.records.watching import Asked, Watching


@click.command(name="watch")
@project_options
@click.option(
    *("--study", "names"),
    metavar="STUDY",
    multiple=True,
    help="Watch the runs of this study alone; may be given again. The configuration's by default.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Look at the files again after so many seconds.",
)
@click.option("--once", is_flag=True, help="Look once, print what there is, and end.")
@json_option
def command(
    project: Project, names: tuple[str, ...], every: float, once: bool, as_json: bool
) -> None:
    """Watch a sweep: runs done, running and failed, their losses and speed, the time left.

    All is read from results/, so that any machine that sees this folder can watch, also while Slurm
    runs the jobs elsewhere. Ends when the sweep is finished, or with Ctrl-C, which stops no run.
    Where the output is no terminal, a line is printed at each change; with --json, an object.
    """
    from moelaws.records.layout import Results
    from moelaws.records.watching import Watching

    watching = Watching(Results(), _asked(project, names))
    if once:
        every = 0.0
    if as_json:
        _follow_as_json(watching, project.tier, every)
    elif sys.stdout.isatty() or once:
        _follow_on_terminal(watching, project.tier, every)
    else:
        _follow_in_lines(watching, project.tier, every)


def _asked(project: Project, names: tuple[str, ...]) -> dict[str, Asked]:
    """Returns the runs that the Snakefile would ask for, by id."""
    from moelaws.accounting.parameters import count_parameters
    from moelaws.grids.sweep import expand_study
    from moelaws.records.watching import Asked
    from moelaws.spec.project import chosen_studies

    if names:
        project = project.model_copy(update={"studies": list(names)})
    if project.source == "simulated":
        raise UserError(
            "nothing is trained here, for the configuration says source: simulated; "
            "add --set source=trained to watch the trainings"
        )
    sweeps = [expand_study(study, project) for study in chosen_studies(project)]
    studies: dict[str, tuple[str, ...]] = {}
    for sweep in sweeps:
        for run in sweep.runs:
            studies[run.run_id] = (*studies.get(run.run_id, ()), sweep.study.study)
    if not studies:
        chosen = ", ".join(sweep.study.study for sweep in sweeps)
        raise UserError(f"no run is trained for {chosen}; name another study with --study")
    asked = {}
    for run in (run for sweep in sweeps for run in sweep.runs):
        size = count_parameters(run.config.model)
        asked[run.run_id] = Asked(
            studies[run.run_id], run.flops, run.config.steps, size.total, size.active
        )
    return asked


def _follow_as_json(watching: Watching, tier: str, every: float) -> None:
    """Prints a JSON object now and at each change until the sweep is finished."""
    from moelaws.cli.watch_text import as_dict

    last = None
    while True:
        snapshot = watching.look()
        if snapshot.courses != last:
            last = snapshot.courses
            print_json(as_dict(snapshot, tier))
            sys.stdout.flush()
        if snapshot.finished or not every:
            return
        time.sleep(every)


def _follow_on_terminal(watching: Watching, tier: str, every: float) -> None:
    """Draws the sweep again and again at the same place until it is finished."""
    from rich.console import Console
    from rich.live import Live

    from moelaws.cli.watch_text import drawn

    console = Console(highlight=False)
    snapshot = watching.look()
    if snapshot.finished or not every:
        console.print(drawn(snapshot, tier))
        return
    # What does not fit into the window is shown at the end.
    with Live(drawn(snapshot, tier), console=console, auto_refresh=False) as live:
        while not snapshot.finished:
            time.sleep(every)
            snapshot = watching.look()
            live.update(drawn(snapshot, tier), refresh=True)


def _follow_in_lines(watching: Watching, tier: str, every: float) -> None:
    """Prints a line now and whenever runs began or ended, or a percent of the FLOPs passed."""
    from moelaws.cli.watch_text import idle, totals

    last = None
    while True:
        snapshot = watching.look()
        counts = snapshot.counts
        change = (counts, f"{snapshot.share:.0%}")
        if change != last:
            last = change
            click.echo(totals(snapshot))
            if not (counts["running"] or snapshot.finished):
                click.echo(idle(tier))
            sys.stdout.flush()
        if snapshot.finished:
            return
        time.sleep(every)
