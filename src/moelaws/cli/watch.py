"""``moelaws watch``: a sweep while it runs, from its files alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from moelaws.cli.answers import JsonCommand, print_json
from moelaws.cli.common import Words, between, option
from moelaws.cli.project import project_options
from moelaws.files.layout import Results
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies

if TYPE_CHECKING:
    from moelaws.records.watching import Planned, Snapshot, Watching


@click.command(name="watch", cls=JsonCommand)
@project_options
@option(
    "--study names",
    "Watch the runs of this study alone; may be given again. The configuration's by default.",
    metavar="STUDY",
    multiple=True,
)
@option(
    "--every",
    "Look at the files again after so many seconds.",
    between(0.1, 86_400),
    2.0,
    metavar="SECONDS",
)
@option("--once", "Look once, print what there is, and end.", is_flag=True)
def command(project: Project, names: Words, every: float, once: bool, as_json: bool) -> None:
    """Watch a sweep: runs done, running and failed, their losses and speed, the time left.

    All is read from results/, so that any machine that sees this folder can watch, also while Slurm
    runs the jobs elsewhere. Ends when the sweep is finished, or with Ctrl-C, which stops no run.
    Where the output is no terminal, a line is printed at each change; with --json, an object.
    """
    from moelaws.cli.watch_text import as_dict
    from moelaws.records.watching import Watching

    project = project.model_copy(update={"studies": names}) if names else project
    watching = Watching(Results(), _planned(project))
    snapshots = _snapshots(watching, 0.0 if once else every)
    if as_json:
        for _, alike in groupby(snapshots, key=lambda snapshot: snapshot.courses):
            print_json(as_dict(next(alike), project.tier))
            sys.stdout.flush()
    elif sys.stdout.isatty() or once:
        _draw(snapshots, project)
    else:
        _print_lines(snapshots, project)


def _planned(project: Project) -> dict[str, Planned]:
    """Returns the runs that the Snakefile would ask for, by id."""
    from moelaws.grids.sweep import expand_study, planned

    if project.source == "simulated":
        raise UserError(
            "nothing is trained here, for the configuration says source: simulated; "
            "add --set source=trained to watch the trainings"
        )
    sweeps = [expand_study(study, project) for study in chosen_studies(project)]
    runs = planned(sweeps, project)
    if not runs:
        chosen = ", ".join(sweep.study.study for sweep in sweeps)
        raise UserError(f"no run is trained for {chosen}; name another study with --study")
    return runs


def _snapshots(watching: Watching, every: float) -> Iterator[Snapshot]:
    """Yields the sweep every so many seconds until it is finished; only once if that is 0."""
    yield (snapshot := watching.look())
    while every and not snapshot.finished:
        time.sleep(every)
        yield (snapshot := watching.look())


def _draw(snapshots: Iterator[Snapshot], project: Project) -> None:
    """Draws the sweep again and again at the same place of the terminal."""
    from rich.console import Console
    from rich.live import Live

    from moelaws.cli.watch_text import drawn

    console = Console(highlight=False)
    if not console.is_terminal:  # of --once
        click.echo(drawn(next(snapshots), project).plain)
        return
    with Live(console=console, auto_refresh=False) as live:
        for snapshot in snapshots:
            live.update(drawn(snapshot, project), refresh=True)


def _print_lines(snapshots: Iterator[Snapshot], project: Project) -> None:
    """Prints a line now and whenever runs began or ended, or a percent of the FLOPs passed."""
    from moelaws.cli.watch_text import idle

    for _, alike in groupby(snapshots, key=lambda s: (s.counts, f"{s.fraction_done:.0%}")):
        snapshot = next(alike)
        click.echo(", ".join(snapshot.words()))
        if not (snapshot.counts["running"] or snapshot.finished):
            click.echo(idle(project))
        sys.stdout.flush()
