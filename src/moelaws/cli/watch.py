"""``moelaws watch``: a sweep while it runs, from its files alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from moelaws.cli.common import between, json_command, option, print_answer, table_text
from moelaws.cli.project import project_options, snakemake_call
from moelaws.files.layout import Results
from moelaws.records.progress import duration
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.words import visible

if TYPE_CHECKING:
    from moelaws.records.watching import Planned, Snapshot, State, Watching


@json_command
@project_options
@option(
    "--every",
    "Look at the files again after so many seconds.",
    between(0.1, 86_400),
    2.0,
    metavar="SECONDS",
)
@option("--once", "Look once, print what there is, and end.", is_flag=True)
def command(project: Project, every: float, once: bool, as_json: bool) -> None:
    """Watch a sweep: runs done, running and failed, their losses and speed, the time left.

    All is read from results/, so that any machine that sees this folder can watch, also while Slurm
    runs the jobs elsewhere. Ends when the sweep is finished, or with Ctrl-C, which stops no run.
    Where the output is no terminal, a line is printed whenever runs began or ended or a percent of
    the FLOPs passed; with --json, an object.
    """
    from moelaws.records.watching import Watching

    watching = Watching(Results(), _planned(project))
    snapshots = _snapshots(watching, 0.0 if once else every)
    if sys.stdout.isatty() and not (once or as_json):
        _draw(snapshots, project)
        return
    for _, alike in groupby(snapshots, key=lambda s: (s.counts, f"{s.fraction_done:.0%}")):
        snapshot = next(alike)
        text = drawn(snapshot, project) if once else ", ".join(snapshot.words())
        print_answer(as_json, as_dict(snapshot, project.tier), text)
        sys.stdout.flush()


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
        raise UserError(f"no run is trained for {chosen}; choose others with --set studies=...")
    return runs


def _snapshots(watching: Watching, every: float) -> Iterator[Snapshot]:
    """Yields the sweep every so many seconds until it is finished; only once if that is 0."""
    while True:
        snapshot = watching.look()
        yield snapshot
        if not every or snapshot.finished:
            return
        time.sleep(every)


def _draw(snapshots: Iterator[Snapshot], project: Project) -> None:
    """Draws the sweep again and again at the same place of the terminal."""
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as live:
        for snapshot in snapshots:
            # As a text: a host or a study of one's own may have a name that looks like markup.
            live.update(Text(visible(drawn(snapshot, project))), refresh=True)


SHOWN: tuple[State, ...] = ("running", "interrupted", "failed")
ROWS = 16  # of each state
BAR_WIDTH = 30  # of the FLOPs
# What a run measures comes first: a narrow terminal cuts the end of each line.
COLUMNS = ("run", "state", "step", "loss", "tokens/s", "left", "name", "study", "what is known")


def drawn(snapshot: Snapshot, project: Project) -> str:
    """Returns the drawing of a sweep: totals, then the runs at work, stopped and failed."""
    full = round(BAR_WIDTH * snapshot.fraction_done)
    lines = [f"Sweep of tier {project.tier}", "█" * full + "░" * (BAR_WIDTH - full)]
    lines.append(", ".join(snapshot.words()))
    lines += ["", _table(snapshot), ""]
    if any(len(snapshot.of(state)) > ROWS for state in SHOWN):
        lines.append(f"At most {ROWS} runs of each state are shown; --once --json lists all.")
    if snapshot.of("interrupted"):
        lines.append("The next call of snakemake resumes the interrupted runs.")
    if snapshot.of("failed"):
        lines.append("`moelaws runs --retry` has the failed runs trained again.")
    if snapshot.finished:
        lines.append("All runs are over. `moelaws runs` lists them.")
    elif not snapshot.of("running"):
        lines.append(
            "No trainer is at work now. Unless a call of snakemake is about to start one, this "
            f"trains what is left: {snakemake_call(project)}"
        )
    return "\n".join(lines)


def as_dict(snapshot: Snapshot, tier: str) -> dict[str, Any]:
    """Returns the sweep's numbers; ``runs`` has those that are running, interrupted or failed."""
    shown = snapshot.of(*SHOWN)
    return {
        "tier": tier,
        "finished": snapshot.finished,
        "runs_asked": len(snapshot.planned),
        "counts": snapshot.counts,
        "flops": snapshot.total_flops,
        "flops_left": snapshot.flops_left,
        "seconds_left": snapshot.seconds_left,
        "runs": [
            {"run_id": run, **vars(snapshot.planned[run]), "steps_done": course.step}
            | {key: value for key, value in vars(course).items() if key != "step"}
            for run, course in shown.items()
        ],
    }


def _table(snapshot: Snapshot) -> str:
    """Returns the table of the runs at work, and of those that stopped or failed."""
    rows = []
    for state in SHOWN:
        for run, course in islice(snapshot.of(state).items(), ROWS):
            planned, pace, left = (
                snapshot.planned[run],
                course.tokens_per_second,
                course.seconds_left,
            )
            place = [course.device, course.host, f"job {course.job}" if course.job else ""]
            rows.append(
                [
                    run[:8],
                    state,
                    f"{course.step}/{planned.steps}" if course.step else "begins",
                    "-" if course.loss is None else f"{course.loss:.4f}",
                    "-" if pace is None else f"{pace:,.0f}",
                    "-" if left is None else duration(left),
                    planned.name,
                    ", ".join(planned.studies),
                    course.reason or " ".join(filter(None, place)),
                ]
            )
    return table_text(COLUMNS, rows, cut=True) if rows else ""
