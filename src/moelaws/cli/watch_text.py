"""How ``moelaws watch`` shows a sweep: a drawing for a terminal, a line for a log, JSON."""

from itertools import islice
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from moelaws.cli.project import snakemake_call
from moelaws.records.progress import duration
from moelaws.records.watching import Course, Snapshot
from moelaws.spec.project import Project
from moelaws.spec.words import visible

SHOWN = 16  # rows of a table
BARS = "▁▂▃▄▅▆▇█"
BAR_WIDTH = 30  # of the FLOPs
WIDE = 120  # columns that a terminal needs for the whole table of the runs at work


def idle(project: Project) -> str:
    """Returns what to do when runs are left and no trainer is at work."""
    return (
        "No trainer is at work now. Unless a call of snakemake is about to start one, this trains "
        f"what is left: {snakemake_call(project)}"
    )


def drawn(snapshot: Snapshot, project: Project, width: int) -> RenderableType:
    """Returns the drawing of a sweep: totals, then the runs at work, stopped and failed.

    ``width`` is the terminal's, in columns: a narrow one shows less of the runs at work.
    """
    full = round(BAR_WIDTH * snapshot.fraction_done)
    blocks: list[RenderableType] = [
        Text(f"Sweep of tier {project.tier}", style="bold"),
        Text("█" * full + "░" * (BAR_WIDTH - full)),
        Text(", ".join(snapshot.words())),
    ]
    if running := snapshot.of("running"):
        blocks += ["", _running(snapshot, running, width >= WIDE), *_more(running)]
    if stopped := snapshot.of("interrupted"):
        blocks += ["", Text("Stopped before their end; the next call of snakemake resumes them:")]
        blocks += [_reasons(stopped, snapshot), *_more(stopped)]
    if failed := snapshot.of("failed"):
        blocks += ["", Text("Failed; `moelaws runs --retry` has them trained again:")]
        blocks += [_reasons(failed, snapshot), *_more(failed)]
    if snapshot.finished:
        blocks += ["", Text("All runs are over. `moelaws runs` lists them.")]
    elif not running:
        blocks += ["", Text(idle(project))]
    return Group(*blocks)


def as_dict(snapshot: Snapshot, tier: str) -> dict[str, Any]:
    """Returns the sweep's numbers; ``runs`` has those that are running, interrupted or failed."""
    shown = snapshot.of("running", "interrupted", "failed")
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


def sparkline(values: tuple[float, ...]) -> str:
    """Returns numbers as a row of bars, from the lowest bar to the highest one."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    steps = [round((value - low) / span * (len(BARS) - 1)) if span else 0 for value in values]
    return "".join(BARS[step] for step in steps)


def _running(snapshot: Snapshot, running: dict[str, Course], wide: bool) -> Table:
    """Returns the table of the runs at work.

    If it is not ``wide``, it leaves out the study and the machine.
    """
    table = _table("run")
    table.add_column("name", no_wrap=wide)
    if wide:
        table.add_column("study", no_wrap=True)
    for name in ("step", "loss"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("lately", no_wrap=True)
    for name in ("tokens/s", "left"):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("where")  # shortened first: the only column that could wrap, or the name
    for run, course in islice(running.items(), SHOWN):
        planned = snapshot.planned[run]
        pace, left = course.tokens_per_second, course.seconds_left
        where = [course.device, course.host, f"job {course.job}" if course.job else ""]
        cells = [
            run[:8],
            planned.name,
            *([", ".join(planned.studies)] if wide else []),
            f"{course.step}/{planned.steps}" if course.step else "begins",
            "-" if course.loss is None else f"{course.loss:.4f}",
            sparkline(course.losses),
            "-" if pace is None else f"{pace:,.0f}",
            "-" if left is None else duration(left),
            *([" ".join(word for word in where if word)] if wide else []),
        ]
        # As texts: a host or a study of one's own may have a name that looks like markup.
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))
    return table


def _reasons(runs: dict[str, Course], snapshot: Snapshot) -> Table:
    table = _table("run", "name", "study")
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("what is known", overflow="fold")
    for run, course in islice(runs.items(), SHOWN):
        planned = snapshot.planned[run]
        step = f"{course.step}/{planned.steps}"
        cells = (run[:8], planned.name, ", ".join(planned.studies), step, course.reason)
        table.add_row(*map(Text, map(visible, cells)))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _more(runs: dict[str, Course]) -> list[Text]:
    hidden = len(runs) - SHOWN
    return [Text(f"and {hidden} more (--once --json lists all)")] if hidden > 0 else []
